"""bench: which tests are run, and the three forms of the table."""

import csv
import io
import pathlib
import statistics
import tempfile
import unittest

from program import TINY, assert_one_line, run, succeed
from sparse_checkpoint import write_checkpoint

SMALL = ["bench", "-p", "16", "-n", "8", "-r", "3"]


class Bench(unittest.TestCase):
    def test_json(self):
        rows = succeed(*SMALL, "-t", "1,2", "--output", "json").json
        self.assertEqual(
            [(r["test"], r["threads"]) for r in rows],
            [("pp16", 1), ("tg8", 1), ("pp16", 2), ("tg8", 2)],
        )
        for row in rows:
            self.assertEqual(
                list(row),
                [
                    "test",
                    "n_prompt",
                    "n_gen",
                    "depth",
                    "batch",
                    "threads",
                    "isa",
                    "format",
                    "tokens_per_second",
                    "gb_per_second",
                    "probe_gb_per_second",
                    "probe_bytes",
                    "share_of_probe",
                    "model",
                    "version",
                ],
            )
            speed = row["tokens_per_second"]
            self.assertEqual(len(speed["samples"]), 3)
            self.assertEqual(speed["median"], statistics.median(speed["samples"]))
            self.assertEqual(speed["min"], min(speed["samples"]))
            self.assertEqual(speed["max"], max(speed["samples"]))
            self.assertGreater(row["probe_gb_per_second"], 0.1)
            self.assertEqual(
                (row["format"], row["model"], row["batch"]), ("bf16", "openelm-tiny", 1)
            )
            share = row["gb_per_second"] / row["probe_gb_per_second"] if row["n_gen"] else None
            self.assertAlmostEqual(row["share_of_probe"], share, places=9)
        self.assertEqual((rows[0]["n_prompt"], rows[0]["n_gen"]), (16, 0))
        self.assertEqual((rows[1]["n_prompt"], rows[1]["n_gen"]), (0, 8))

    def test_bytes_read(self):
        weights = 2 * 3591872
        per_position = 4 * 2 * 32 * 12  # float32, keys and values, 12 heads of 32
        prompt, generation = succeed(
            *SMALL, "--depth", "100", "--kv-type", "f32", "--output", "json"
        ).json
        self.assertEqual((prompt["test"], generation["test"]), ("pp16@100", "tg8@100"))
        prompt_bytes = prompt["gb_per_second"] * 1e9 * 16 / prompt["tokens_per_second"]["median"]
        token_bytes = generation["gb_per_second"] * 1e9 / generation["tokens_per_second"]["median"]
        # The norms' few weights are kept as float32.
        self.assertLess(abs(prompt_bytes / weights - 1), 0.01)
        self.assertLess(abs((token_bytes - per_position * 104.5) / weights - 1), 0.01)
        # The model fits into the last-level cache, so the probe reads no more than a token does.
        for row in (prompt, generation):
            self.assertLess(abs((row["probe_bytes"] - per_position * 101) / weights - 1), 0.01)

    def test_sequences_together_read_the_weights_once(self):
        weights = 2 * 3591872
        per_position = 4 * 2 * 32 * 12
        prompt, generation = succeed(
            *SMALL, "--batch", "4", "--depth", "10", "--kv-type", "f32", "--output", "json"
        ).json
        self.assertEqual((prompt["batch"], generation["batch"]), (4, 4))
        # Per second and per token of all sequences; times the tokens of a pass: bytes of a pass.
        prompt_bytes = prompt["gb_per_second"] * 1e9 / prompt["tokens_per_second"]["median"]
        step_bytes = generation["gb_per_second"] * 1e9 / generation["tokens_per_second"]["median"]
        self.assertLess(abs(prompt_bytes * 4 * 16 / weights - 1), 0.01)
        self.assertLess(abs((step_bytes * 4 - 4 * per_position * 14.5) / weights - 1), 0.01)

    def test_an_embedding_that_is_not_the_head_is_not_read(self):
        heads, head, ffn, width, vocabulary = 4, 64, 256, 256, 8192
        layer = (heads + 2) * head * width + heads * head * width + 3 * ffn * width
        read = 2 * (layer + vocabulary * width)
        for tied in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                model = pathlib.Path(folder) / "model"
                write_checkpoint(model, [(heads, ffn)], width, head, vocabulary, tied)
                [row] = succeed("bench", "-m", model, "-p", 0, "-n", 2, "--output", "json").json
            token_bytes = row["gb_per_second"] * 1e9 / row["tokens_per_second"]["median"]
            self.assertLess(abs(token_bytes / read - 1), 0.01, tied)

    def test_parts_can_be_left_out(self):
        rows = succeed("bench", "-p", "0", "-n", "4", "-r", "1", "--output", "json").json
        self.assertEqual([r["test"] for r in rows], ["tg4"])
        rows = succeed("bench", "-p", "4", "-n", "0", "-r", "2", "--output", "json").json
        self.assertEqual([r["test"] for r in rows], ["pp4"])
        speed = rows[0]["tokens_per_second"]
        self.assertAlmostEqual(speed["median"], sum(speed["samples"]) / 2)
        assert_one_line(self, run("bench", "-p", "0", "-n", "0"), 2, "nothing to measure")

    def test_tables(self):
        rows = list(csv.DictReader(io.StringIO(succeed(*SMALL, "--output", "csv").text)))
        self.assertEqual([r["test"] for r in rows], ["pp16", "tg8"])
        self.assertGreater(float(rows[1]["tokens_per_second"]), 0)
        self.assertEqual(rows[0]["share_of_probe"], "")
        speed, probe = float(rows[1]["gb_per_second"]), float(rows[1]["probe_gb_per_second"])
        self.assertAlmostEqual(float(rows[1]["share_of_probe"]), speed / probe, delta=0.002)
        header, line, prompt, generation = succeed(*SMALL).text.splitlines()
        self.assertEqual({text.count("|") for text in (header, line, prompt, generation)}, {11})
        self.assertIn("| tg8 |", generation)
        self.assertRegex(generation, r"\d+ % of \d+\.\d over 6\.9 MiB \|$")

    def test_names_are_quoted_in_csv(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / 'a, "b"'
            model.symlink_to(TINY)
            table = succeed(*SMALL, "-m", model, "--output", "csv").text
            self.assertEqual(next(csv.DictReader(io.StringIO(table)))["model"], model.name)

    def test_faults(self):
        for options, part in [
            (["-p", "513"], "512"),
            (["--depth", "500"], "512"),
            (["-t", "1,x"], "'x'"),
            (["-t", "0"], "'0'"),
            (["-r", "0"], "--repetitions"),
            (["--batch", "0"], "--batch"),
            (["--batch", "257"], "--batch"),
            (["--output", "xml"], "json"),
        ]:
            assert_one_line(self, run("bench", *options), 2, part)


if __name__ == "__main__":
    unittest.main()
