"""inspect: what a model folder holds, without reading its weights."""

import json
import pathlib
import tempfile
import unittest

from program import DATA, TINY, succeed
from sparse_checkpoint import PUBLISHED, published_layers, write_checkpoint


class Inspect(unittest.TestCase):
    def test_json_of_the_bundled_model(self):
        shown = succeed("inspect", "--json").json
        config = json.loads((TINY / "config.json").read_text())
        self.assertEqual(shown["path"], str(TINY))
        self.assertEqual(shown["parameters"], 3591872)
        self.assertEqual([layer["n_heads"] for layer in shown["layers"]], config["num_query_heads"])
        self.assertEqual([layer["n_kv_heads"] for layer in shown["layers"]], config["num_kv_heads"])
        self.assertEqual(
            [layer["ffn_dim"] for layer in shown["layers"]],
            [128, 192, 320, 384, 512, 576, 704, 768],
        )
        embedding_and_norm = 4096 * 192 + 192
        self.assertEqual(
            sum(layer["parameters"] for layer in shown["layers"]) + embedding_and_norm,
            shown["parameters"],
        )
        self.assertEqual(shown["memory"]["weight_bytes"], 2 * 3591872)
        per_token = 2 * 32 * sum(config["num_kv_heads"])
        self.assertEqual(
            shown["memory"]["kv_cache_bytes"],
            {
                "f32": 4 * 512 * per_token,
                "f16": 2 * 512 * per_token,
                "bf16": 2 * 512 * per_token,
                "q8": 512 * per_token * 9 // 8,  # a float32 scale for every head of 32
            },
        )
        self.assertEqual(list(shown["formats"]), ["bf16"])
        self.assertEqual(shown["bits_per_weight"], 16)
        self.assertIn(shown["cpu"]["in_use"], shown["cpu"]["compiled_in"])
        self.assertIn(shown["cpu"]["in_use"], shown["cpu"]["supports"])
        self.assertNotIn("tensors", shown)

    def test_tensors(self):
        shown = succeed("inspect", "--json", "--tensors").json
        self.assertEqual(len(shown["tensors"]), sum(shown["formats"].values()))
        by_name = {t["name"]: t for t in shown["tensors"]}
        embedding = by_name["transformer.token_embeddings.weight"]
        self.assertEqual((embedding["shape"], embedding["format"]), ([4096, 192], "bf16"))
        self.assertEqual(embedding["bytes"], 4096 * 192 * 2)
        text = succeed("inspect", "--tensors").text
        for name in by_name:
            self.assertIn(name, text)
        self.assertNotIn("token_embeddings", succeed("inspect").text)

    def test_text(self):
        text = succeed("inspect").text
        for part in ("3.6M", "3591872", "bf16", "512 positions", "4096", "scalar", "6.9 MiB"):
            self.assertIn(part, text)
        table = text[text.index("\nlayer ") :].splitlines()[2:]
        self.assertEqual(len(table), 8)
        self.assertEqual(table[7].split()[:4], ["7", "8", "2", "768"])

    def test_the_published_sizes(self):
        for size, (n, width, head, parameters) in PUBLISHED.items():
            with self.subTest(size), tempfile.TemporaryDirectory() as folder:
                model = pathlib.Path(folder) / size
                weights = write_checkpoint(model, published_layers(size), width, head, 32000)
                text = succeed("inspect", "-m", model).text
                self.assertIn(f"parameters   {parameters} (", text)
                self.assertIn(f"layers       {n},", text)
                shown = succeed("inspect", "--json", "-m", model).json
                self.assertLess(weights.stat().st_size - shown["memory"]["weight_bytes"], 100_000)

    def test_every_checkpoint_of_the_tests(self):
        for folder in sorted((DATA / "ckpt").iterdir()):
            shown = succeed("inspect", "--json", "-m", folder).json
            config = json.loads((folder / "config.json").read_text())
            self.assertEqual(shown["config"]["model_dim"], config["model_dim"])
            self.assertEqual(len(shown["layers"]), config["num_transformer_layers"])


if __name__ == "__main__":
    unittest.main()
