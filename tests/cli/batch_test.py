"""openelm batch: records in, records out, whatever happens in between."""

import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest

from program import DATA, command, complete_json, environment, run, succeed

WORDS = "once upon a time there was a little girl who loved the sun and the moon".split()


def records(n, seed=1, max_tokens=12):
    chance = random.Random(seed)
    return [
        {
            "id": i,
            "prompt": " ".join(chance.choices(WORDS, k=chance.randint(1, 30))),
            "max_tokens": chance.randint(0, max_tokens),
        }
        for i in range(n)
    ]


def jsonl(objects):
    return "".join(json.dumps(o) + "\n" for o in objects).encode()


def parsed(out):
    return [json.loads(line) for line in out.decode().splitlines()]


class Answers(unittest.TestCase):
    def test_each_is_what_complete_gives(self):
        asked = records(12)
        answers = parsed(succeed("batch", "-q", "--parallel", 5, stdin=jsonl(asked)).out)
        self.assertEqual([a["index"] for a in answers], list(range(12)))
        for record, answer in zip(asked, answers):
            alone = complete_json(
                "-p", record["prompt"], "-n", record["max_tokens"], "--seed", answer["seed"]
            )
            for field in ("text", "finish_reason", "stop", "usage", "seed"):
                self.assertEqual(answer[field], alone[field])

    def test_do_not_depend_on_how_many_run_together(self):
        asked = jsonl(records(30))
        outs = {
            succeed("batch", "-q", "--seed", 5, *how, stdin=asked).out
            for how in (
                ["--parallel", 1],
                ["--parallel", 16, "-t", 1],
                ["--parallel", 7, "--kv-memory", "1K"],
                [],
            )
        }
        self.assertEqual(len(outs), 1)

    def test_of_shards_are_those_of_the_whole(self):
        asked = jsonl(records(20))
        whole = succeed("batch", "-q", "--seed", 5, stdin=asked).out.splitlines()
        for shard in (1, 2, 3):
            part = succeed("batch", "-q", "--seed", 5, "--shard", f"{shard}/3", stdin=asked)
            self.assertEqual(part.out.splitlines(), whole[shard - 1 :: 3])

    def test_unordered_are_the_same(self):
        asked = jsonl(records(20))
        ordered = succeed("batch", "-q", "--seed", 5, stdin=asked).out.splitlines()
        unordered = succeed("batch", "-q", "--seed", 5, "--unordered", stdin=asked)
        self.assertEqual(sorted(unordered.out.splitlines()), sorted(ordered))

    def test_of_a_text_file(self):
        result = succeed("batch", "-q", "--format", "text", "-n", 2, stdin=b"Once\r\nUpon a")
        self.assertEqual([(a["id"], a["index"]) for a in parsed(result.out)], [(None, 0), (None, 1)])

    def test_a_worker_is_answered_record_by_record(self):
        with subprocess.Popen(
            command("batch", "-q"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
        ) as worker:
            for i in range(3):
                worker.stdin.write(jsonl([{"id": i, "prompt": "Once", "max_tokens": 2}]))
                worker.stdin.flush()
                self.assertEqual(json.loads(worker.stdout.readline())["id"], i)
            worker.stdin.close()
            self.assertEqual(worker.wait(), 0)

    def test_shared_beginnings_are_evaluated_once(self):
        head = " ".join(WORDS * 4)
        asked = [{"prompt": f"{head} {i}", "max_tokens": 1} for i in range(10)]
        with tempfile.TemporaryDirectory() as folder:
            summary = pathlib.Path(folder, "summary.json")
            succeed("batch", "-q", "--summary", summary, stdin=jsonl(asked))
            told = json.loads(summary.read_text())
        self.assertEqual((told["records"], told["failed"], told["complete"]), (10, 0, True))
        shared = told["prompt_tokens"] - told["prompt_tokens_evaluated"]
        self.assertEqual(told["prompt_tokens_shared"], shared)
        self.assertGreater(shared, 0.85 * 0.9 * told["prompt_tokens"])


class Records(unittest.TestCase):
    def only(self, line, *arguments):
        result = run("batch", "-q", "-n", 1, *arguments, stdin=line)
        answers = parsed(result.out)
        self.assertEqual(len(answers), 1)
        self.assertEqual(result.status, 3 if "error" in answers[0] else 0, result.err)
        return answers[0]

    def test_ids_of_any_type(self):
        for name in (b"7", b"-1.5", b'"a\\u00e9"', b"null", b"true", b'[1,{"b":[]}]'):
            answer = self.only(b'{"id":' + name + b',"prompt":"x"}')
            self.assertEqual(answer["id"], json.loads(name))

    def test_wrong_ones_are_reported_and_passed(self):
        cases = {
            b"not json": "not valid JSON",
            b"[1]": "not a record",
            b'"text"': "not a record",
            b"{}": '"prompt": missing',
            b'{"prompt":5}': '"prompt": expected a text, got 5',
            b'{"prompt":"x","prompt":"y"}': "repeated key",
            b'{"prompt":"\xff"}': "not a record",
            b'{"prompt":"x","max_tokens":"ten"}': '"max_tokens": expected a whole number',
            b'{"prompt":"x","max_tokens":1e9}': '"max_tokens": expected a whole number',
            b'{"prompt":"x","max_tokens":-2}': '"max_tokens": expected a whole number',
            b'{"prompt":"x","seed":-1}': '"seed": expected a whole number',
            b'{"prompt":"x","stop":5}': '"stop": expected a text',
            b'{"prompt":"x","stop":["a",""]}': '"stop": expected a text',
            b'{"prompt":"x","temperature":"hot"}': '"temperature": expected a number',
            b'{"prompt":"x","temperature":1e99}': '"temperature": expected a number',
            b'{"prompt":"x","top_p":2}': "top-p",
            b'{"prompt":"x","ignore_eos":1}': '"ignore_eos": expected true or false',
            b'{"prompt":"x","logprobs":99999}': "logprobs",
            b'{"prompt":"x","id":123456789012345678901}': '"id": expected a number',
            b'{"prompt":"x","id":' + b"[" * 100000: "nested",
            json.dumps({"prompt": "word " * 3000}).encode(): "more than the context",
        }
        for line, message in cases.items():
            answer = self.only(line)
            self.assertEqual(answer["error"]["line"], 1)
            self.assertIn(message, answer["error"]["message"])

    def test_an_error_keeps_the_id_and_the_others_go_on(self):
        lines = b'\n{"id":"a","prompt":"x","top_k":-1}\n  \r\n{"id":"b","prompt":"x"}'
        result = run("batch", "-q", "-n", 1, stdin=lines)
        self.assertEqual(result.status, 3)
        first, second = parsed(result.out)
        self.assertEqual((first["id"], first["index"], first["error"]["line"]), ("a", 0, 2))
        self.assertEqual((second["id"], second["index"]), ("b", 1))

    def test_null_is_absent_and_an_empty_prompt_is_fine(self):
        self.assertIn("text", self.only(b'{"prompt":"x","stop":null,"seed":null}'))
        self.assertEqual(self.only(b'{"prompt":""}')["usage"]["prompt_tokens"], 1)
        self.assertIn("error", self.only(b'{"prompt":""}', "--no-bos"))

    def test_byte_order_mark_line_ends_and_the_same_id_twice(self):
        line = b'{"id":1,"prompt":"x"}'
        result = succeed("batch", "-q", "-n", 1, stdin=b"\xef\xbb\xbf" + line + b"\r\n" + line)
        self.assertEqual([a["id"] for a in parsed(result.out)], [1, 1])

    def test_a_line_of_ten_megabytes(self):
        line = json.dumps({"prompt": "x", "note": "y" * 10_000_000}).encode()
        self.assertIn("text", self.only(line))

    def test_a_record_decides_for_itself(self):
        line = b'{"prompt":"Once","max_tokens":5,"seed":7,"temperature":0.5,"logprobs":2,"more":[1]}'
        answer = self.only(line, "--carry")
        alone = complete_json("-p", "Once", "-n", 5, "--seed", 7, "--temperature", 0.5)
        self.assertEqual(answer["text"], alone["text"])
        self.assertEqual(answer["input"], {"more": [1]})
        self.assertEqual(len(answer["logprobs"][0]["top_logprobs"]), 2)
        self.assertNotIn("input", self.only(line))

    def test_strict_stops_at_the_first_wrong_one(self):
        lines = jsonl(records(5)) + b"wrong\n" + jsonl(records(5))
        result = run("batch", "-q", "--strict", stdin=lines)
        self.assertEqual(result.status, 3)
        self.assertEqual([("error" in a) for a in parsed(result.out)], [False] * 5 + [True])

    def test_none_at_all(self):
        self.assertEqual(succeed("batch", "-q", stdin=b"").out, b"")


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.input = self.folder / "in.jsonl"
        self.output = self.folder / "out.jsonl"

    def batch(self, *arguments, output=None):
        return run("batch", "-q", "-i", self.input, "-o", output or self.output, *arguments)

    def test_every_kill_is_survived(self):
        """As many kills as it takes, with and without a seed; no byte is other in the end."""
        self.input.write_bytes(jsonl(records(200, max_tokens=40)) + b"wrong\n")
        chance = random.Random(4)
        for seed in ([], ["--seed", "11"]):
            self.output.unlink(missing_ok=True)
            kills = 0
            for attempt in range(400):
                worker = subprocess.Popen(
                    command("batch", "-q", "-i", self.input, "-o", self.output, "--resume", *seed),
                    env=environment(),
                )
                if kills < 30:
                    time.sleep(chance.uniform(0.005, 0.1))
                    worker.kill()
                    kills += 1
                if worker.wait() >= 0:
                    break
                # The end of a line that was cut off while it was written.
                if self.output.exists() and self.output.stat().st_size > 0 and attempt % 3 == 0:
                    with self.output.open("ab") as torn:
                        torn.write(b'{"id":7,"ind')
            self.assertEqual(worker.returncode, 3)
            run_seed = json.loads((self.folder / "out.jsonl.run.json").read_text())["seed"]
            whole = self.folder / "whole.jsonl"
            result = self.batch("--seed", run_seed, "--force", output=whole)
            self.assertEqual(result.status, 3)
            self.assertEqual(self.output.read_bytes(), whole.read_bytes())

    def test_another_run_does_not_mix_in(self):
        self.input.write_bytes(jsonl(records(3)))
        self.assertEqual(self.batch("--seed", 1).status, 0)
        before = self.output.read_bytes()
        for changed, name in (
            (["--temperature", 0.1], "temperature"),
            (["--seed", 2], "seed"),
            (["-m", DATA / "ckpt" / "tiny-gqa4"], ""),
            (["--quantize", 8], "weights"),
        ):
            result = self.batch("--resume", *changed)
            self.assertEqual(result.status, 1, changed)
            self.assertIn(name, result.err)
            self.assertEqual(self.output.read_bytes(), before)
        self.assertEqual(self.batch().status, 1)
        self.assertEqual(self.batch("--resume").status, 0)
        self.assertEqual(self.output.read_bytes(), before)
        self.assertEqual(self.batch("--force", "--seed", 2).status, 0)
        self.assertNotEqual(self.output.read_bytes(), before)

    def test_a_changed_input_is_noticed(self):
        self.input.write_bytes(jsonl(records(3)))
        self.assertEqual(self.batch().status, 0)
        self.input.write_bytes(jsonl(records(4)[1:]))
        result = self.batch("--resume")
        self.assertEqual(result.status, 1)
        self.assertIn("the input has changed", result.err)

    def test_damaged_companions_are_named(self):
        self.input.write_bytes(jsonl(records(3)))
        self.assertEqual(self.batch().status, 0)
        header = self.folder / "out.jsonl.run.json"
        header.write_text("{}")
        self.assertIn("not the header", self.batch("--resume").err)
        header.unlink()
        self.assertIn("missing", self.batch("--resume").err)
        self.assertEqual(self.batch("--force").status, 0)
        self.output.write_bytes(b"something else\n")
        self.assertIn("line 1", self.batch("--resume").err)

    def test_nobody_else_writes_the_output(self):
        self.input.write_bytes(jsonl(records(1)))
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        first = subprocess.Popen(
            command("batch", "-q", "-i", fifo, "-o", self.output), env=environment()
        )
        with fifo.open("wb") as pipe:
            pipe.write(jsonl(records(1)))
            pipe.flush()
            while not self.output.exists() or self.output.stat().st_size == 0:
                self.assertIsNone(first.poll())
                time.sleep(0.02)
            result = self.batch("--resume")
            self.assertEqual(result.status, 1)
            self.assertIn("another process", result.err)
        self.assertEqual(first.wait(), 0)

    def test_a_full_disk_and_a_reader_that_left(self):
        self.input.write_bytes(jsonl(records(3)))
        result = self.batch(output="/dev/full")
        self.assertEqual(result.status, 1)
        self.assertIn("No space left", result.err)
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as closed:
            done = subprocess.run(
                command("batch", "-q", "-i", self.input),
                stdout=closed,
                stderr=subprocess.PIPE,
                env=environment(),
                check=False,
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"reader has gone away", done.stderr)

    def test_interrupted_and_gone_on_with(self):
        self.input.write_bytes(jsonl(records(400, max_tokens=60)))
        worker = subprocess.Popen(
            command("batch", "-q", "-i", self.input, "-o", self.output, "--seed", 1),
            env=environment(),
        )
        while not self.output.exists() or self.output.stat().st_size == 0:
            time.sleep(0.001)
        worker.send_signal(signal.SIGINT)
        self.assertIn(worker.wait(), (130, 0))  # 0: it was faster
        part = self.output.read_bytes()
        self.assertTrue(part.endswith(b"\n"))
        self.assertEqual(self.batch("--resume").status, 0)
        whole = self.folder / "whole.jsonl"
        self.assertEqual(self.batch("--seed", 1, output=whole).status, 0)
        self.assertEqual(self.output.read_bytes(), whole.read_bytes())

    def test_files_that_cannot_be(self):
        self.input.write_bytes(jsonl(records(1)))
        self.assertEqual(run("batch", "-i", self.folder / "none", "-o", "-").status, 1)
        self.assertEqual(run("batch", "-i", self.folder, "-o", "-").status, 1)
        self.assertEqual(self.batch(output=self.folder / "no" / "out").status, 1)
        self.assertEqual(self.batch(output=self.input).status, 2)
        self.assertEqual(self.batch("--resume", output="-").status, 2)
        self.assertEqual(self.batch("--resume", "--force").status, 2)

    def test_wrong_usage(self):
        for arguments in (
            ["--shard", "0/2"],
            ["--shard", "3/2"],
            ["--shard", "2"],
            ["--parallel", "0"],
            ["--parallel", "100000"],
            ["--kv-memory", "much"],
            ["--kv-memory", "99999999999T"],
            ["--format", "xml"],
        ):
            self.assertEqual(run("batch", *arguments, stdin=b"").status, 2, arguments)


if __name__ == "__main__":
    unittest.main()
