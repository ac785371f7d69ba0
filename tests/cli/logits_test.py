"""logits: the numbers themselves, the same whichever way they are computed."""

import hashlib
import json
import struct
import unittest

from program import BOS, DATA, TINY, assert_one_line, complete_json, run, succeed, tokenize

CHECKPOINT = DATA / "ckpt" / "tiny-text"


def logits(*arguments):
    return succeed("logits", *arguments).json


def digest(rows):
    return hashlib.sha256(b"".join(struct.pack(f"<{len(r)}f", *r) for r in rows)).hexdigest()


class Logits(unittest.TestCase):
    IDS = "1 2161 661 261 519 40 50"

    def test_positions_and_digest(self):
        everything = logits("--ids", self.IDS, "--at", "all", "--all")
        self.assertEqual(list(everything), ["ids", "positions", "sha256"])
        self.assertEqual(everything["ids"], [int(i) for i in self.IDS.split()])
        self.assertEqual([p["position"] for p in everything["positions"]], list(range(7)))
        rows = [p["logits"] for p in everything["positions"]]
        self.assertEqual({len(r) for r in rows}, {4096})
        self.assertEqual(everything["sha256"], digest(rows))
        some = logits("--ids", self.IDS, "--at", "5,0,5", "--all")
        self.assertEqual([p["position"] for p in some["positions"]], [0, 5])
        self.assertEqual(some["sha256"], digest([rows[0], rows[5]]))
        last = logits("--ids", self.IDS, "--all")
        self.assertEqual(last["positions"], [everything["positions"][6]])

    def test_top_is_best_first(self):
        row = logits("--ids", self.IDS, "--all")["positions"][0]["logits"]
        expected = sorted(range(len(row)), key=lambda i: (-row[i], i))
        for n in (1, 5, 4096):
            top = logits("--ids", self.IDS, "--top", n)["positions"][0]["top"]
            self.assertEqual(top, [{"id": i, "logit": row[i]} for i in expected[:n]])
        self.assertEqual(len(logits("--ids", self.IDS)["positions"][0]["top"]), 10)

    def test_chunks_threads_and_instruction_sets_change_nothing(self):
        ids = " ".join(str(3 + i * 37 % 4000) for i in range(150))
        expected = logits("--ids", ids, "--at", "all", "--top", 1)["sha256"]
        for options in (
            ["--chunk", 1],
            ["--chunk", 7],
            ["--chunk", 64, "-t", 2],
            ["-t", 1],
            ["-t", 5],
            ["--isa", "scalar"],
        ):
            self.assertEqual(
                logits("--ids", ids, "--at", "all", "--top", 1, *options)["sha256"],
                expected,
                options,
            )

    def test_cache_type(self):
        f32 = logits("--ids", self.IDS)["sha256"]
        self.assertEqual(f32, logits("--ids", self.IDS, "--kv-type", "f32")["sha256"])
        self.assertNotEqual(f32, logits("--ids", self.IDS, "--kv-type", "f16")["sha256"])

    def test_text_gets_bos(self):
        answer = logits("-p", "Once upon a time")
        self.assertEqual(answer["ids"], [BOS, *tokenize("Once upon a time")])
        best = answer["positions"][0]["top"][0]["id"]
        greedy = complete_json(
            "-p", "Once upon a time", "-n", 1, "--temperature", 0, "--kv-type", "f32"
        )["tokens"]
        self.assertEqual([best], greedy)
        self.assertEqual(logits("-p", "Once", "--no-bos")["ids"], tokenize("Once"))

    def test_no_tokenizer_is_needed(self):
        self.assertFalse((CHECKPOINT / "tokenizer.model").exists())
        config = json.loads((CHECKPOINT / "config.json").read_text())
        row = logits("-m", CHECKPOINT, "--ids", "1 5 9", "--all")["positions"][0]["logits"]
        self.assertEqual(len(row), config["vocab_size"])

    def test_faults(self):
        for options, parts in [
            (["--ids", "1 2 3", "--at", "3"], ["--at", "'3'", "0 to 2"]),
            (["--ids", "1 2 3", "--at", "first"], ["--at", "first"]),
            (["--ids", "1 2 3", "--at", ""], ["--at"]),
            (["--ids", ""], ["no tokens"]),
            (["--ids", "1 4096"], ["4096", "4095"]),
            (["--ids", "1 -2"], ["--ids", "-2"]),
            (["--ids", "1", "--top", "0"], ["--top"]),
            (["--ids", "1", "--chunk", "0"], ["--chunk"]),
        ]:
            assert_one_line(self, run("logits", *options), 2, *parts)
        too_long = run("logits", "--ids", "1 " * 513)
        assert_one_line(self, too_long, 1, 513, 512)

    def test_the_bundled_model_is_the_default(self):
        self.assertEqual(
            logits("--ids", "1 5")["sha256"], logits("-m", TINY, "--ids", "1 5")["sha256"]
        )


if __name__ == "__main__":
    unittest.main()
