"""compare_peers.py, with two made-up programs in the place of the real ones."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "compare_peers.py"

# Both write their arguments to a common log. Speeds come from the environment: a list of each
# program's, one a run.
FAKE = """\
    #!{python}
    import json, os, pathlib, sys
    log = pathlib.Path({log!r})
    arguments = sys.argv[1:]
    def value(flag):
        return arguments[arguments.index(flag) + 1] if flag in arguments else "0"
    with log.open("a") as file:
        file.write(json.dumps([{name!r}, *arguments]) + "\\n")
    n_prompt, n_gen = int(value("-p")), int(value("-n"))
    program = {name!r} + (" fa" if value("-fa") == "1" else "")
    earlier = [json.loads(line) for line in log.read_text().splitlines()]
    same = [a for a in earlier if a == [{name!r}, *arguments]]
    speed = json.loads(os.environ["SPEEDS"])[program][len(same) - 1]
"""
OPENELM = """\
    print(json.dumps([{"n_prompt": n_prompt, "n_gen": n_gen, "depth": int(value("--depth")),
                       "version": "9.9", "isa": "abacus", "tokens_per_second": {"median": speed}}]))
"""
LLAMA = """\
    filled = {"n_prompt": int(value("-d")), "n_gen": 0, "n_depth": 0, "avg_ts": 1e9}
    print(json.dumps([filled, {"n_prompt": n_prompt, "n_gen": n_gen, "n_depth": int(value("-d")),
                      "build_commit": "abc1234", "avg_ts": speed}]))
"""
STEADY = {"openelm": [30.0] * 3, "llama": [20.0] * 3, "llama fa": [10.0] * 3}


class ComparePeers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.openelm = self.program("openelm", OPENELM)
        self.llama = self.program("llama", LLAMA)

    def program(self, name, ending):
        path = self.folder / name
        text = FAKE.format(python=sys.executable, name=name, log=str(self.folder / "log")) + ending
        path.write_text(textwrap.dedent(text))
        path.chmod(0o755)
        return path

    def run_script(self, *arguments, speeds=None):
        command = [sys.executable, SCRIPT, "--openelm", self.openelm, "--llama-bench", self.llama]
        return subprocess.run(
            [*map(str, command), *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "SPEEDS": json.dumps(speeds or STEADY)},
            check=False,
        )

    def results(self, *arguments, **how):
        done = self.run_script("--json", *arguments, **how)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def log(self):
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]

    def test_medians_and_the_better_flash_attention(self):
        speeds = {"openelm": [60, 30, 33], "llama": [20, 1, 90], "llama fa": [22, 24, 21]}
        report = self.results(
            *"--model M --gguf G --threads 2 --tests tg64@1536 -r 3".split(), speeds=speeds
        )
        [result] = report["results"]
        self.assertEqual(result["openelm"]["median"], 33)
        self.assertEqual(result["openelm"]["samples"], [60, 30, 33])
        self.assertEqual((result["openelm"]["min"], result["openelm"]["max"]), (30, 60))
        self.assertEqual(result["llama_cpp"]["median"], 22)
        self.assertTrue(result["llama_cpp"]["flash_attention"])
        self.assertEqual(result["ratio"], 1.5)
        self.assertEqual((result["test"], result["threads"]), ("tg64@1536", 2))
        self.assertEqual(
            (report["openelm_version"], report["isa"], report["llama_cpp_commit"]),
            ("9.9", "abacus", "abc1234"),
        )
        self.assertIn("--tests tg64@1536", report["command"])

    def test_every_cell_is_measured_in_every_round_and_the_order_alternates(self):
        self.results(*"--model M --gguf G --threads 1,2 --tests pp512,tg8 -r 2".split())
        log = self.log()
        self.assertEqual(len(log), 2 * 2 * 2 * 3)
        names = [(a[0], "1" in a[a.index("-fa") :] if "-fa" in a else None) for a in log]
        self.assertEqual([n for n, _ in names[:3]], ["openelm", "llama", "llama"])
        self.assertEqual([f for _, f in names[1:3]], [False, True])
        self.assertEqual([n for n, _ in names[-3:]], ["llama", "llama", "openelm"])
        self.assertEqual([f for _, f in names[-3:-1]], [True, False])

        def option(arguments, flag):
            return arguments[arguments.index(flag) + 1]

        cells = [tuple(option(a, f) for f in ("-p", "-n", "-t")) for a in log[:12:3]]
        self.assertEqual(
            cells, [("512", "0", "1"), ("512", "0", "2"), ("0", "8", "1"), ("0", "8", "2")]
        )

    def test_both_programs_get_the_same_test(self):
        self.results(*"--model M --quantize 8 --gguf G --threads 3 --tests tg4@32 -r 1".split())
        ours, off, on = (" ".join(arguments) for arguments in self.log())
        for part in ("-m M", "-p 0", "-n 4", "--depth 32", "-t 3", "-r 1", "--quantize 8"):
            self.assertIn(part, ours)
        for part in ("-m G", "-p 0", "-n 4", "-d 32", "-t 3", "-r 1", "-ngl 0"):
            self.assertIn(part, off)
            self.assertIn(part, on)

    def test_pairs_and_the_table(self):
        done = self.run_script(
            *"--model a/M/ --gguf b/M-BF16.gguf --model a/M --quantize 4 --gguf b/M-Q4.gguf".split(),
            *"--threads 2 --tests pp16,tg8 -r 3".split(),
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        header, line, *rows = done.stdout.split("\n\n")[0].splitlines()
        self.assertEqual({row.count("|") for row in (header, line, *rows)}, {7})
        self.assertEqual(len(rows), 4)
        ours, theirs = "30.00 (30.00 .. 30.00)", "20.00 (20.00 .. 20.00)"
        self.assertEqual(rows[0], f"| M, M-BF16.gguf | pp16 | 2 | {ours} | {theirs} | 1.50 |")
        self.assertEqual(rows[3], f"| M q4, M-Q4.gguf | tg8 | 2 | {ours} | {theirs} | 1.50 |")
        self.assertIn("openelm 9.9 (abacus), llama.cpp abc1234", done.stdout)

    def test_flash_attention_is_marked(self):
        speeds = {**STEADY, "llama fa": [25.0]}
        done = self.run_script(
            *"--model M --gguf G --threads 1 --tests tg8 -r 1".split(), speeds=speeds
        )
        self.assertIn("| 25.00 (25.00 .. 25.00), fa | 1.20 |", done.stdout)

    def test_a_failing_program_ends_it_with_its_last_words(self):
        self.llama.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('x\\nno such file: G')\n")
        done = self.run_script(*"--model M --gguf G --tests tg8".split())
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"compare_peers: error: .*llama.* exit 1: no such file: G\n$")
        self.llama.unlink()
        done = self.run_script(*"--model M --gguf G --tests tg8".split())
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(self.llama), done.stderr)

    def test_rows_of_other_tests_do_not_count(self):
        self.openelm.write_text(self.openelm.read_text().replace('"n_gen": n_gen', '"n_gen": 7'))
        done = self.run_script(*"--model M --gguf G --tests tg8".split())
        self.assertEqual(done.returncode, 1)
        self.assertIn("printed no row of tg8", done.stderr)

    def test_wrong_usage(self):
        for arguments, part in [
            ("--model M", "--gguf is missing"),
            ("--gguf G --model M", "belongs to a --model"),
            ("--model M --gguf G --tests tg0", "'tg0' is no test"),
            ("--model M --gguf G --tests pp512,x", "'x' is no test"),
            ("--model M --gguf G --threads 0", "'0' is not a number from 1"),
            ("--model M --gguf G -r -1", "-1"),
        ]:
            done = self.run_script(*arguments.split())
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
