#!/usr/bin/env python3
"""Measures `openelm bench` and llama.cpp's `llama-bench` in turn on the same weights.

    tools/compare_peers.py --openelm build/openelm --llama-bench LLAMA/build/bin/llama-bench \\
        --model MODEL --gguf MODEL-BF16.gguf \\
        --model MODEL --quantize 8 --gguf MODEL-Q8_0.gguf

Each --model begins a pair that --gguf completes. In every round each program runs once, so that
what else the machine does, and how warm it is, meets both alike; llama.cpp runs with flash
attention off and on, and the better median counts. Prints a Markdown table, with --json an object.
Nothing else should run meanwhile.
"""

import argparse
import collections
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys

OURS = "openelm"
FLASH_ATTENTION = {"llama.cpp": 0, "llama.cpp, flash attention": 1}

Test = collections.namedtuple("Test", "name n_prompt n_gen depth")


class Failure(Exception):
    """One line about what went wrong."""


def parse_test(text):
    match = re.fullmatch(r"(pp|tg)([1-9]\d*)(?:@([1-9]\d*))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no test: pp512, tg64 or tg64@1536")
    count, depth = int(match[2]), int(match[3] or 0)
    return Test(text, count, 0, depth) if match[1] == "pp" else Test(text, 0, count, depth)


def positive(text):
    if not re.fullmatch(r"[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1")
    return int(text)


def list_of(parse):
    return lambda text: [parse(item) for item in text.split(",")]


class BeginPair(argparse.Action):
    def __call__(self, parser, options, value, flag=None):
        options.pairs = [*(options.pairs or []), {"model": value, "quantize": None, "gguf": None}]


class ExtendPair(argparse.Action):
    def __call__(self, parser, options, value, flag=None):
        if not options.pairs:
            parser.error(f"{flag} belongs to a --model before it")
        options.pairs[-1][self.dest] = value


def parse_command_line():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--openelm", required=True, metavar="BIN", help="our program")
    add("--llama-bench", required=True, metavar="BIN", help="llama.cpp's program")
    add("--model", dest="pairs", required=True, action=BeginPair, metavar="DIR", help="for openelm")
    add("--gguf", action=ExtendPair, metavar="FILE", help="the same weights for llama.cpp")
    add("--quantize", action=ExtendPair, choices=["8", "4"], help="passed on to openelm bench")
    add("--threads", type=list_of(positive), metavar="N,N", help="default: the CPUs of this process")
    add("--tests", type=list_of(parse_test), default="pp512,tg64,tg64@1536", metavar="T,T")
    add("-r", "--rounds", type=positive, default=5, metavar="N", help="runs of each (default 5)")
    add("--json", action="store_true", help="print JSON with all samples")
    options = parser.parse_args()
    for pair in options.pairs:
        if pair["gguf"] is None:
            parser.error(f"--model {pair['model']}: its --gguf is missing")
    if options.threads is None:
        known = hasattr(os, "sched_getaffinity")
        options.threads = [len(os.sched_getaffinity(0)) if known else os.cpu_count()]
    return options


def run(command):
    """The rows that a benchmark prints as JSON."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise Failure(f"{shlex.join(command)}: exit {done.returncode}: {(lines or [''])[-1]}")
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Failure(f"{shlex.join(command)}: printed no JSON") from None


def the_row(rows, test, depth_key, command):
    """The row of the test itself: a program may print others beside it."""
    for row in rows:
        if (row["n_prompt"], row["n_gen"], row.get(depth_key, 0)) == test[1:]:
            return row
    raise Failure(f"{shlex.join(command)}: printed no row of {test.name}")


class Bench:
    """The two programs; remembers what they said about themselves."""

    def __init__(self, options):
        self.options = options
        self.openelm_version = self.isa = self.llama_commit = None

    def openelm(self, pair, test, threads):
        command = [self.options.openelm, "bench", "-q", "-m", pair["model"], "--output", "json"]
        command += ["-p", str(test.n_prompt), "-n", str(test.n_gen), "--depth", str(test.depth)]
        command += ["-t", str(threads), "-r", "1"]
        if pair["quantize"]:
            command += ["--quantize", pair["quantize"]]
        row = the_row(run(command), test, "depth", command)
        self.openelm_version, self.isa = row["version"], row["isa"]
        return row["tokens_per_second"]["median"]

    def llama(self, pair, test, threads, flash_attention):
        command = [self.options.llama_bench, "-m", pair["gguf"], "-o", "json"]
        command += ["-p", str(test.n_prompt), "-n", str(test.n_gen)]
        if test.depth:  # which builds before it was added do not know
            command += ["-d", str(test.depth)]
        # Layers on a GPU would be no comparison.
        command += ["-t", str(threads), "-r", "1", "-ngl", "0", "-fa", str(flash_attention)]
        row = the_row(run(command), test, "n_depth", command)
        self.llama_commit = row.get("build_commit")
        return row["avg_ts"]


def summary(samples):
    return {
        "median": statistics.median(samples),
        "min": min(samples),
        "max": max(samples),
        "samples": samples,
    }


def measure(options, bench):
    """One result for each pair, test and number of threads."""
    cells = [(p, t, n) for p in options.pairs for t in options.tests for n in options.threads]
    samples = [collections.defaultdict(list) for _ in cells]
    for index in range(options.rounds):
        print(f"round {index + 1} of {options.rounds}", file=sys.stderr)
        for cell, (pair, test, threads) in enumerate(cells):
            runs = {OURS: lambda p=pair, t=test, n=threads: bench.openelm(p, t, n)}
            for name, flag in FLASH_ATTENTION.items():
                runs[name] = lambda p=pair, t=test, n=threads, f=flag: bench.llama(p, t, n, f)
            # Who comes first takes turns as well.
            for name in list(runs) if index % 2 == 0 else reversed(list(runs)):
                samples[cell][name].append(runs[name]())

    results = []
    for cell, (pair, test, threads) in enumerate(cells):
        of = {name: summary(values) for name, values in samples[cell].items()}
        best = max(FLASH_ATTENTION, key=lambda name: of[name]["median"])
        results.append(
            {
                **pair,
                "test": test.name,
                "threads": threads,
                "openelm": of[OURS],
                "llama_cpp": {"flash_attention": FLASH_ATTENTION[best] == 1, **of[best]},
                "ratio": of[OURS]["median"] / of[best]["median"],
            }
        )
    return results


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            match = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.MULTILINE)
    except OSError:
        match = None
    return match[1] if match else platform.processor() or platform.machine()


def markdown(report):
    yield "| weights | test | threads | openelm tokens/s | llama.cpp tokens/s | ratio |"
    yield "|---|---|--:|--:|--:|--:|"
    for result in report["results"]:
        weights = os.path.basename(os.path.normpath(result["model"]))
        if result["quantize"]:
            weights += f" q{result['quantize']}"
        weights += f", {os.path.basename(result['gguf'])}"
        speed = "{median:.2f} ({min:.2f} .. {max:.2f})"
        ours, theirs = (speed.format(**result[name]) for name in ("openelm", "llama_cpp"))
        flash = ", fa" if result["llama_cpp"]["flash_attention"] else ""
        yield (
            f"| {weights} | {result['test']} | {result['threads']} | {ours} | {theirs}{flash} | "
            f"{result['ratio']:.2f} |"
        )
    yield ""
    yield (
        f"Medians (min .. max) of {report['rounds']} rounds; fa: flash attention on. "
        f"openelm {report['openelm_version']} ({report['isa']}), llama.cpp "
        f"{report['llama_cpp_commit']}, {report['cpu']}."
    )
    yield ""
    yield f"    {report['command']}"


def main():
    options = parse_command_line()
    bench = Bench(options)
    try:
        results = measure(options, bench)
    except Failure as failure:
        print(f"compare_peers: error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    report = {
        "command": shlex.join(sys.argv),
        "cpu": cpu_model(),
        "openelm_version": bench.openelm_version,
        "isa": bench.isa,
        "llama_cpp_commit": bench.llama_commit,
        "rounds": options.rounds,
        "results": results,
    }
    print(json.dumps(report, indent=1) if options.json else "\n".join(markdown(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
