#!/usr/bin/env python3
"""Compares the logits of openelm with those of mlx-lm on the same model folders.

    pip install "mlx[cpu]" mlx-lm          # or mlx alone on a Mac
    python3 tools/compare_mlx.py build/openelm FOLDER...

mlx-lm computes in float32 from the weights as they are stored. With plain weights the logits are the
same to about 1e-4; with quantised weights openelm rounds activations to 8 bits, which moves them by a
hundredth or two of their spread. Exits with 1 when the root mean square of the difference is above
0.05 of the spread.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys

import mlx.core as mx
import numpy as np
from mlx_lm.utils import load_model

MOST = 0.05


def their_logits(folder, ids):
    model, _ = load_model(folder)
    model.apply(lambda p: p if p.dtype == mx.uint32 else p.astype(mx.float32))
    return np.array(model(mx.array([ids]))[0].astype(mx.float32))


def our_logits(program, folder, ids):
    words = " ".join(map(str, ids))
    arguments = ["logits", "-m", folder, "--ids", words, "--at", "all", "--all"]
    shown = json.loads(subprocess.run([program, *arguments], check=True, capture_output=True).stdout)
    return np.array([position["logits"] for position in shown["positions"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    failed = False
    print(f"{'folder':<40} {'rms':>8} {'largest':>8} {'spread':>8} {'same best':>9}")
    for folder in options.folders:
        vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
        draw = random.Random(1)
        ids = [1] + [draw.randrange(3, vocabulary) for _ in range(options.tokens - 1)]
        theirs = their_logits(folder, ids)
        ours = our_logits(options.program, folder, ids)
        miss = ours - theirs
        rms = np.sqrt((miss**2).mean())
        same = (ours.argmax(1) == theirs.argmax(1)).mean()
        print(
            f"{folder.name:<40} {rms:8.5f} {np.abs(miss).max():8.5f} {theirs.std():8.4f} {same:9.1%}"
        )
        failed |= not rms < MOST * theirs.std()
    sys.exit(failed)


if __name__ == "__main__":
    main()
