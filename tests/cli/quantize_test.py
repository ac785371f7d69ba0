"""quantize: the folder that is written, and that nothing is left of one that fails."""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from program import TIMEOUT, TINY, assert_one_line, command, environment, run, succeed
from sparse_checkpoint import PUBLISHED, published_layers, write_checkpoint

PROMPT = ["--ids", "1 5 900 77 8 1234", "--at", "all", "--top", 1]
PATIENCE = 60  # seconds that a loaded machine may need


class Quantize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out = self.root / "out"

    def entries(self):
        return sorted(path.name for path in self.root.iterdir())

    def logits(self, *arguments):
        return succeed("logits", *PROMPT, *arguments).json["sha256"]

    def test_the_folder_computes_what_quantising_at_load_does(self):
        seen = set()
        for bits in (4, 8):
            for size in (32, 64, 128):
                how = ["--group-size", size]
                succeed("quantize", TINY, self.out, "--bits", bits, *how, "--force", "-q")
                stored = self.logits("-m", self.out)
                self.assertEqual(stored, self.logits("--quantize", bits, *how, "-q"))
                self.assertEqual(stored, self.logits("-m", self.out, "-t", 3))
                seen.add(stored)
        self.assertEqual(len(seen), 6)
        self.assertNotIn(self.logits(), seen)

    def test_four_bits_in_groups_of_64_are_the_default(self):
        succeed("quantize", TINY, self.out)
        shown = succeed("inspect", "--json", "-m", self.out).json
        self.assertEqual(shown["formats"], {"bf16": 33, "q4_g64": 32, "q8_g64": 1})
        self.assertAlmostEqual(shown["bits_per_weight"], 5.39, delta=0.01)
        self.assertEqual(self.logits("-m", self.out), self.logits("--quantize", 4))

    def test_summary_and_head_bits(self):
        result = succeed("quantize", TINY, self.out, "--bits", 4, "--head-bits", 4)
        self.assertIn("body     4.50 bits a weight", result.text)
        self.assertIn("head     4.50 bits a weight", result.text)
        self.assertIn("33 quantised, 33 kept", result.text)
        self.assertEqual(result.err, "")

    def test_the_folder_is_a_whole_model(self):
        succeed("quantize", TINY, self.out, "--bits", 8)
        text = succeed("complete", "-m", self.out, "-p", "Once upon a time", "-n", 8).text
        self.assertTrue(text.strip())
        shown = succeed("bench", "-m", self.out, "-p", 4, "-n", 2, "-r", 1, "--output", "json").json
        self.assertEqual(shown[0]["format"], "q8_g64")

    def test_matrices_that_do_not_fit_are_named(self):
        result = succeed("quantize", TINY, self.out, "--group-size", 128)
        self.assertIn("21 of 33 matrices are not quantised", result.err)
        self.assertIn("no multiple of 128", result.err)
        result = succeed("logits", *PROMPT, "--quantize", 4, "--group-size", 128)
        self.assertIn("21 of 33 matrices are not quantised", result.err)

    def test_nothing_is_overwritten_without_force(self):
        succeed("quantize", TINY, self.out)
        before = (self.out / "model.safetensors").read_bytes()
        assert_one_line(self, run("quantize", TINY, self.out, "--bits", 8), 1, "--force")
        self.assertEqual((self.out / "model.safetensors").read_bytes(), before)
        succeed("quantize", TINY, self.out, "--bits", 8, "--force")
        self.assertNotEqual((self.out / "model.safetensors").read_bytes(), before)
        self.assertEqual(self.entries(), ["out"])

    def test_wrong_usage(self):
        for arguments, words in (
            ([], "IN is required"),
            ([TINY], "OUT is required"),
            ([TINY, self.out, "--bits", 5], "'5' is not one of 4, 8"),
            ([TINY, self.out, "--group-size", 16], "32, 64, 128"),
            ([TINY, self.out, "--head-bits", 6], "4, 8"),
            ([TINY, TINY, "--force"], "is or holds the model"),
        ):
            assert_one_line(self, run("quantize", *arguments), 2, words)
        for arguments, words in (
            (["--quantize", 5], "'5' is not one of 8, 4"),
            (["--group-size", 32], "--quantize only"),
        ):
            assert_one_line(self, run("logits", *PROMPT, *arguments), 2, words)
        self.assertEqual(self.entries(), [])

    def test_failures(self):
        missing = self.root / "missing"
        assert_one_line(self, run("quantize", missing, self.out), 1, missing)
        assert_one_line(self, run("quantize", TINY, missing / "out"), 1, missing)
        succeed("quantize", TINY, self.out)
        again = run("quantize", self.out, self.root / "again")
        assert_one_line(self, again, 1, "is quantised already (q4_g64)")
        again = run("logits", *PROMPT, "-m", self.out, "--quantize", 8)
        assert_one_line(self, again, 1, "is quantised already (q4_g64)")
        self.assertEqual(self.entries(), ["out"])

    def test_nan_is_found(self):
        model = self.root / "model"
        shutil.copytree(TINY, model)
        weights = bytearray((model / "model.safetensors").read_bytes())
        header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
        name = "transformer.token_embeddings.weight"
        begin = 8 + int.from_bytes(weights[:8], "little") + header[name]["data_offsets"][0]
        at = begin + 2 * (4095 * 192 + 5)
        weights[at : at + 2] = b"\xc0\x7f"
        (model / "model.safetensors").write_bytes(weights)
        words = (name, "row 4095, column 5 is NaN")
        assert_one_line(self, run("quantize", model, self.out), 1, *words)
        assert_one_line(self, run("logits", *PROMPT, "-m", model, "--quantize", 8), 1, *words)
        self.assertEqual(self.entries(), ["model"])

    def test_a_full_disk_leaves_nothing(self):
        """A limit on the size of files stands in for it: writing fails halfway."""

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        done = subprocess.run(
            command("quantize", TINY, self.out),
            capture_output=True,
            env=environment(),
            timeout=TIMEOUT,
            preexec_fn=limit,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"model.safetensors: cannot write: File too large", done.stderr)
        self.assertEqual(self.entries(), [])

    def test_ctrl_c_leaves_nothing(self):
        # Sparse on disk, and large enough that quantising takes a while.
        model = self.root / "model"
        _, width, head, _ = PUBLISHED["270M"]
        write_checkpoint(model, published_layers("270M"), width, head, 32000)
        child = subprocess.Popen(
            command("quantize", model, self.out, "-t", 1),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        deadline = time.monotonic() + PATIENCE
        while len(self.entries()) < 2:
            self.assertLess(time.monotonic(), deadline, "nothing was begun")
            self.assertIsNone(child.poll())
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=TIMEOUT)
        self.assertEqual((child.returncode, out, err), (130, b"", b""))
        self.assertEqual(self.entries(), ["model"])

    def test_help(self):
        text = succeed("quantize", "--help").text
        for part in ("IN", "OUT", "--bits", "--group-size", "--head-bits", "--force", "Example"):
            self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
