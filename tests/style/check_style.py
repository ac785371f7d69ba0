"""Checks the rules of the house on a source tree: who may include whom, the order of includes, the
length of files and lines, words that must not appear, and the formatting of C++.

Usage: check_style.py TREE. Prints one line per fault and exits with 1 if there is any.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

MAX_LINES = 420
MAX_COLUMNS = 100

# The layers of src, each with those it may include besides itself and the public headers.
LAYERS = {
    "base": [],
    "parallel": ["base"],
    "checkpoint": ["base", "parallel"],
    "quant": ["base", "parallel"],
    "kernels": ["base", "parallel", "quant"],
    "model": ["base", "parallel", "checkpoint", "quant", "kernels"],
    "text": ["base"],
    "runtime": ["base", "parallel", "checkpoint", "quant", "kernels", "model", "text"],
    "cli": ["base", "parallel", "checkpoint", "quant", "kernels", "model", "text", "runtime"],
}

# Headers known to few: the pattern of the include, and the places that may use it.
RESTRICTED = [
    (re.compile(r"<nlohmann/"), ["src/checkpoint/", "src/cli/", "tests/"]),
    (re.compile(r"<sentencepiece"), ["src/text/tokenizer.cpp"]),
    (re.compile(r"<CLI/"), ["src/cli/"]),
    (re.compile(r"<spdlog/"), ["src/cli/"]),
    (re.compile(r"<g(test|mock)/"), ["tests/"]),
    (
        re.compile(r"<(\w*intrin|arm_neon|cpuid)\.h>"),
        ["src/kernels/", "src/parallel/", "tests/kernels/"],
    ),
]

# Written so that this file does not contain what it looks for.
FORBIDDEN = {
    "-ffast-[m]ath": "results must not depend on the compiler's liberties",
    "-march=[n]ative": "the program must start on any CPU of its architecture",
    r"\bTO[D]O\b|\bFI[X]ME\b|\bX[X]X\b": "finish it or open an issue",
    r"(?<![\w.])/wor[k]/|\.\./shar[e]d|/roo[t]/": "a path of one machine",
}

CPP = {".cpp", ".h", ".in"}
CODE = CPP | {".py", ".sh", ".cmake", ".txt"}
TREES = ["src", "include", "tests", "tools", "cmake", "docs", "examples"]
INCLUDE = re.compile(r'\s*#\s*include\s+(<[^>]+>|"[^"]+")')


def sources(tree: pathlib.Path):
    """Files written by people, relative to the tree: no data, no results of builds."""
    for top in TREES:
        for path in sorted((tree / top).rglob("*")):
            relative = path.relative_to(tree)
            if "__pycache__" in relative.parts or relative.parts[:2] == ("tests", "data"):
                continue
            if path.is_file():
                yield relative
    for path in sorted(tree.iterdir()):
        if path.is_file() and path.suffix in CODE | {".md", ".json"}:
            yield path.relative_to(tree)


def is_cpp(path: pathlib.PurePath) -> bool:
    return path.suffix in {".cpp", ".h"} or path.name.endswith(".h.in")


def group(include: str) -> int:
    """The block an include belongs to: standard, third-party, public, project."""
    if include.startswith('"'):
        return 4
    if include.startswith("<openelm/"):
        return 3
    return 1 if re.fullmatch(r"<[a-z_0-9]+>", include) else 2


def check_includes(path: pathlib.PurePosixPath, text: str):
    last = 0
    first = True
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            # A conditional block starts an order of its own.
            if line.startswith(("#if", "#el", "#endif")):
                last = 0
            continue
        include = match.group(1)
        where = f"{path}:{number}"
        if path.parts[0] == "include" and group(include) in (2, 4):
            yield f"{where}: public headers include the standard library and <openelm/...> only"
        for pattern, places in RESTRICTED:
            if pattern.match(include) and not str(path).startswith(tuple(places)):
                yield f"{where}: {include} may be used only in {', '.join(places)}"
        if include.startswith('"'):
            yield from check_layer(path, include.strip('"'), where)
        # The header that a source or its test is about comes first.
        own = first and pathlib.PurePath(include.strip('<">')).stem == path.stem.removesuffix(
            "_test"
        )
        if not own:
            if group(include) < last:
                yield f"{where}: {include} is out of order (std, third-party, openelm, project)"
            last = group(include)
        first = False


def check_layer(path: pathlib.PurePosixPath, include: str, where: str):
    if path.parts[0] != "src":
        return
    layer, target = path.parts[1], include.split("/")[0]
    if target not in LAYERS:
        yield f'{where}: "{include}" does not begin with a folder of src'
    elif target != layer and target not in LAYERS[layer]:
        yield f'{where}: {layer} must not include {target} ("{include}")'


def check_text(path: pathlib.PurePosixPath, text: str):
    lines = text.splitlines()
    if path.suffix in CODE and len(lines) > MAX_LINES:
        yield f"{path}: {len(lines)} lines; a file is one idea, {MAX_LINES} at most"
    if re.search(r"(^|_)(utils?|helpers?|common)(_|$)", path.stem):
        yield f"{path}: name a file after what it does"
    for number, line in enumerate(lines, 1):
        if (is_cpp(path) or path.suffix == ".sh") and len(line) > MAX_COLUMNS:
            yield f"{path}:{number}: longer than {MAX_COLUMNS} columns"
        for pattern, why in FORBIDDEN.items():
            match = re.search(pattern, line)
            if match:
                yield f"{path}:{number}: {match.group()}: {why}"
    if path.suffix == ".h" and "#pragma once" not in text:
        yield f"{path}: no #pragma once"


def clang_format() -> str | None:
    """The clang-format that the code is formatted by: versions differ in taste, so 14 alone."""
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(r"version 14\.", version):
                return program
    return None


def check_format(tree: pathlib.Path, paths):
    program = clang_format()
    if program is None:
        print("clang-format 14 is not installed: formatting not checked", file=sys.stderr)
        return
    files = [str(tree / path) for path in paths if path.suffix in {".cpp", ".h"}]
    result = subprocess.run([program, "--dry-run", *files], capture_output=True, text=True)
    first = {}  # of each file, the place where it first differs
    for line in result.stderr.splitlines():
        if "[-Wclang-format-violations]" in line:
            place = line.split(": warning", 1)[0].removeprefix(str(tree) + "/")
            first.setdefault(place.split(":")[0], place)
    for place in first.values():
        yield f"{place}: not as clang-format would have it"


def faults(tree: pathlib.Path):
    paths = list(sources(tree))
    for path in paths:
        try:
            text = (tree / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        posix = pathlib.PurePosixPath(path.as_posix())
        yield from check_text(posix, text)
        if is_cpp(posix):
            yield from check_includes(posix, text)
    yield from check_format(tree, paths)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=pathlib.Path)
    found = list(faults(parser.parse_args().tree.resolve()))
    print("\n".join(found) if found else "no faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
