"""Perplexity of a model folder on text files, in float32 PyTorch, as lines of JSON.

The tokens are BOS and the file's text. Windows of --context tokens begin every --stride tokens,
with positions from 0 in each; a token is scored in the first window in which one stands before it.
"""

import argparse
import json
import math
import pathlib

import sentencepiece
import torch
import torch.nn.functional as F

from openelm_torch import load


def windows(n, context, stride):
    """(begin, end, first token to score) of each window over n tokens."""
    scored = 0
    for begin in range(0, n, stride):
        end = min(begin + context, n)
        yield begin, end, max(scored, begin + 1)
        scored = end
        if end == n:
            return


@torch.no_grad()
def negative_log_likelihood(model, tokens, context, stride):
    """(sum over the scored tokens, how many they are)"""
    total, count = 0.0, 0
    for begin, end, first in windows(len(tokens), context, stride):
        if first >= end:
            continue
        ids = torch.tensor(tokens[begin:end])[None]
        log_probs = F.log_softmax(model(ids)[0, :-1].double(), -1)
        scored = log_probs.gather(1, ids[0, 1:, None])[first - begin - 1 :]
        total -= float(scored.sum())
        count += len(scored)
    return total, count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--stride", type=int, nargs="+", default=[512, 256])
    args = parser.parse_args()

    model = load(args.model)
    vocabulary = str(args.model / "tokenizer.model")
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=vocabulary)
    for path in args.files:
        tokens = [1] + tokenizer.encode(path.read_text(encoding="utf-8"))
        for stride in args.stride:
            nll, scored = negative_log_likelihood(model, tokens, args.context, stride)
            row = {
                "model": args.model.name,
                "file": path.name,
                "context": args.context,
                "stride": stride,
                "scored": scored,
                "nll": round(nll, 3),
                "perplexity": round(math.exp(nll / scored), 4),
                "bits_per_byte": round(nll / math.log(2) / path.stat().st_size, 4),
            }
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
