"""Model folders: where they may lie, what may be wrong with them, and how that is said."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

from program import (
    CASES,
    PROGRAM,
    TIMEOUT,
    TINY,
    assert_one_line,
    command,
    complete_json,
    environment,
    run,
    succeed,
)

GREEDY = ["-p", "Once upon a time", "-n", 8, "--temperature", 0]


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="openelm modèle 模型 ")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def copy(self, name="model", without=()):
        target = self.root / name
        target.mkdir()
        for path in TINY.iterdir():
            if path.name not in without:
                shutil.copyfile(path, target / path.name)
        return target


class Places(Folder):
    @classmethod
    def setUpClass(cls):
        cls.expected = complete_json("-m", TINY, *GREEDY)["tokens"]

    def check(self, path, **how):
        self.assertEqual(complete_json("-m", path, *GREEDY, **how)["tokens"], self.expected)

    def test_spaces_letters_and_slashes(self):
        folder = self.copy("a model é 你")
        self.check(folder)
        self.check(f"{folder}/")
        self.check(folder.name, cwd=self.root)
        self.check(f"./{folder.name}/../{folder.name}", cwd=self.root)

    def test_hub_cache_of_links(self):
        snapshot = self.root / "models--x--y" / "snapshots" / "rev"
        blobs = self.root / "models--x--y" / "blobs"
        snapshot.mkdir(parents=True)
        blobs.mkdir()
        for i, path in enumerate(sorted(TINY.iterdir())):
            shutil.copyfile(path, blobs / f"hash{i}")
            (snapshot / path.name).symlink_to(f"../../blobs/hash{i}")
        self.check(snapshot)
        link = self.root / "link"
        link.symlink_to(snapshot)
        self.check(link)

    def test_read_only_folder_is_left_alone(self):
        folder = self.copy()
        before = sorted(folder.iterdir())
        folder.chmod(0o555)
        try:
            self.check(folder)
            self.assertEqual(sorted(folder.iterdir()), before)
        finally:
            folder.chmod(0o755)

    def test_bundled_model_from_anywhere(self):
        self.assertEqual(
            succeed("complete", "--json", *GREEDY, cwd="/").json["tokens"], self.expected
        )

    def test_installed_prefix(self):
        program = self.root / "bin" / "openelm"
        program.parent.mkdir()
        shutil.copy2(PROGRAM, program)
        models = self.root / "share" / "openelm" / "models"
        models.mkdir(parents=True)
        self.copy("openelm-tiny").rename(models / "openelm-tiny")
        elsewhere = self.root / "called"
        elsewhere.symlink_to(program)
        shown = subprocess.run(
            [elsewhere, "inspect", "--json"],
            stdout=subprocess.PIPE,
            env=environment(),
            cwd="/",
            check=True,
            timeout=TIMEOUT,
        )
        self.assertEqual(json.loads(shown.stdout)["path"], str(models / "openelm-tiny"))


class Faults(Folder):
    def test_paths(self):
        loop = self.root / "loop"
        loop.symlink_to("loop")
        dangling = self.root / "dangling"
        dangling.symlink_to("nothing")
        empty = self.root / "empty"
        empty.mkdir()
        file = self.root / "file"
        file.write_text("x")
        gguf = self.root / "model.gguf"
        gguf.write_text("GGUF")
        for path, part in [
            (loop, "symbolic link"),
            (dangling, "no such"),
            (empty, "config.json"),
            (file, "is a file"),
            (gguf, "GGUF"),
            (self.root / "none", "no such"),
            (file / "below", ""),
        ]:
            with self.subTest(path.name):
                assert_one_line(self, run("complete", "-p", "A", "-m", path), 1, path, part)
                env = environment(OPENELM_MODEL=str(path))
                assert_one_line(self, run("inspect", env=env), 1, path, part)

    def test_missing_tokenizer_says_where_and_how(self):
        folder = self.copy(without=["tokenizer.model"])
        for command_line in (
            ["complete", "-p", "A"],
            ["chat"],
            ["tokenize", "A"],
            ["logits", "-p", "A"],
        ):
            result = run(*command_line, "-m", folder)
            assert_one_line(self, result, 1, folder / "tokenizer.model", "--tokenizer", "Llama 2")
        named = complete_json("-m", folder, "--tokenizer", TINY / "tokenizer.model", *GREEDY)
        self.assertEqual(named["tokens"], complete_json("-m", TINY, *GREEDY)["tokens"])
        self.assertEqual(
            len(complete_json("-m", folder, "--ids", "1", "-n", 3, "--ignore-eos")["tokens"]), 3
        )
        succeed("logits", "-m", folder, "--ids", "1")
        succeed("inspect", "-m", folder)

    def test_broken_tokenizers(self):
        folder = self.copy()
        for content in (
            b"",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
            b"<!DOCTYPE html><html>",
            b"\xff" * 100,
        ):
            (folder / "tokenizer.model").write_bytes(content)
            assert_one_line(
                self, run("complete", "-p", "A", "-m", folder), 1, folder / "tokenizer.model"
            )
        assert_one_line(
            self, run("tokenize", "A", "--tokenizer", self.root / "no"), 1, self.root / "no"
        )

    def test_a_vocabulary_of_another_size(self):
        other = CASES.parent / "ckpt" / "tiny-text"
        size = json.loads((other / "config.json").read_text())["vocab_size"]
        result = run("complete", "-p", "A", "-m", other, "--tokenizer", TINY / "tokenizer.model")
        self.assertNotEqual(size, 4096)
        assert_one_line(self, result, 1, "4096", size)

    def test_truncated_weights(self):
        folder = self.copy()
        weights = folder / "model.safetensors"
        os.truncate(weights, weights.stat().st_size - 1)
        for name in ("inspect", "logits"):
            ids = ["--ids", "1"] if name == "logits" else []
            assert_one_line(self, run(name, "-m", folder, *ids), 1, weights)

    def test_a_weight_that_is_not_a_number(self):
        folder = self.copy()
        weights = folder / "model.safetensors"
        data = bytearray(weights.read_bytes())
        header = struct.unpack("<Q", data[:8])[0]
        tensors = json.loads(data[8 : 8 + header])
        begin, _ = tensors["transformer.norm.weight"]["data_offsets"]
        data[8 + header + begin : 8 + header + begin + 2] = b"\xc0\x7f"  # bfloat16 NaN
        weights.write_bytes(data)
        for name in ("complete", "logits"):
            result = run(name, "-p", "A", "-m", folder)
            assert_one_line(self, result, 1, "not finite", "position")


if __name__ == "__main__":
    unittest.main()
