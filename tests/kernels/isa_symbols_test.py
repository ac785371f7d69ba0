"""Checks that objects compiled for an instruction set define one global symbol, their table, and no
weak one. A weak symbol (an inline function that was not inlined, say) may be the copy that the
linker keeps for the whole program, which then fails on CPUs without those instructions.

Usage: isa_symbols_test.py NM LIBRARY ISA...
"""

import subprocess
import sys


def defined_globals(nm: str, library: str) -> dict[str, list[tuple[str, str]]]:
    """For each object in the library, the (type, name) of what it offers to the linker."""
    listing = subprocess.run(
        [nm, "--defined-only", "--extern-only", "--demangle", library],
        check=True, capture_output=True, text=True).stdout
    objects: dict[str, list[tuple[str, str]]] = {}
    for line in listing.splitlines():
        if line.endswith(":"):
            current = objects.setdefault(line[:-1], [])
        elif line:
            _, kind, name = line.split(maxsplit=2)
            current.append((kind, name))
    return objects


def faults(isa: str, symbols: list[tuple[str, str]]) -> list[str]:
    table = f"openelm::kernels::{isa}_table"
    found = [f"{isa}: unexpected symbol {kind} {name}" for kind, name in symbols
             if name != table or kind not in "RDB"]
    if not any(name == table for _, name in symbols):
        found.append(f"{isa}: {table} is not defined")
    return found


def main() -> int:
    nm, library, *isas = sys.argv[1:]
    objects = defined_globals(nm, library)
    all_faults = []
    for isa in isas:
        names = [name for name in objects if name in (f"{isa}.cpp.o", f"{isa}.cpp.obj")]
        if len(names) != 1:
            all_faults.append(f"{isa}: {len(names)} objects of that name in {library}")
        for name in names:
            all_faults += faults(isa, objects[name])
    for fault in all_faults:
        print(fault)
    return 1 if all_faults else 0


if __name__ == "__main__":
    sys.exit(main())
