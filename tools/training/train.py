"""Trains a small OpenELM on the tales, or fine-tunes it on question/answer pairs, on CPU.

The order of the data and the first weights follow from --seed. OUT/last.pt holds all that is needed
to go on: start the same command again. OUT/best.pt has the lowest validation loss so far, and
OUT/log.jsonl a line for each validation. With --minutes the schedule follows the clock too:
progress is the larger of steps done / --steps and time used / --minutes.
"""

import argparse
import json
import math
import os
import pathlib
import time

import sentencepiece
import torch

from openelm_torch import OpenELM, make_config
from training_data import Pairs, Tales, read_tales, validation_windows


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("kind", choices=["pretrain", "finetune"])
    parser.add_argument("data", type=pathlib.Path, help="folder with train.jsonl and valid.jsonl")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.model")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of this run")
    parser.add_argument("--init", help="best.pt of another run to start from")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--model-dim", type=int, default=192)
    parser.add_argument("--head-dim", type=int, default=32)
    parser.add_argument("--gqa-groups", type=int, default=4)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8, help="windows a step")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--minutes", type=float, default=0, help="0: by steps alone")
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate")
    parser.add_argument("--lr-end", type=float, default=0.03, help="the last, as a share of --lr")
    parser.add_argument("--warmup", type=int, default=120, help="steps")
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0, help="largest gradient norm")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=250, help="steps between validations")
    parser.add_argument("--compile", action="store_true", help="use torch.compile")
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's own choice")
    return parser.parse_args()


def read_data(args, tokenizer):
    """(training data, validation windows)"""
    train, valid = args.data / "train.jsonl", args.data / "valid.jsonl"
    if args.kind == "pretrain":
        tales = Tales(read_tales(train, tokenizer), args.context, args.seed)
        return tales, validation_windows(read_tales(valid, tokenizer), args.context)
    pairs = Pairs(train, tokenizer, args.context, args.seed)
    return pairs, Pairs(valid, tokenizer, args.context, seed=0).windows()


def make_model(args, vocab_size):
    start = torch.load(args.init, weights_only=False) if args.init else None
    if start:
        model = OpenELM(start["config"])
        model.load_state_dict(start["model"])
        return model
    sizes = (args.layers, args.model_dim, args.head_dim, args.gqa_groups)
    model = OpenELM(make_config(*sizes, vocab_size, args.context))
    model.init_weights(args.seed)
    return model


def make_optimizer(model, args):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    norms = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": args.weight_decay},
        {"params": norms, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.95), eps=1e-8, fused=True)


def learning_rate(args, step, progress):
    """Linear warm-up, then cosine decay to the share --lr-end."""
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    warm = min(1.0, (step + 1) / args.warmup)
    return args.lr * warm * (args.lr_end + (1 - args.lr_end) * cosine)


@torch.no_grad()
def validation_loss(model, windows, batch):
    model.eval()
    total = tokens = 0
    for i in range(0, len(windows) - batch + 1, batch):
        x = torch.cat([w[0] for w in windows[i : i + batch]])
        y = torch.cat([w[1] for w in windows[i : i + batch]])
        n = int((y >= 0).sum())
        total += float(model(x, y)) * n
        tokens += n
    model.train()
    return total / tokens


def save(state, path):
    """Writes all or nothing."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    os.replace(partial, path)


class Run:
    """A training run that can be stopped and gone on with."""

    def __init__(self, args, model):
        self.args, self.model = args, model
        self.optimizer = make_optimizer(model, args)
        self.step, self.position, self.best = 0, (0, 0), math.inf
        self.before, self.started = 0.0, time.time()  # seconds used by earlier calls; this one's
        last = args.out / "last.pt"
        if last.exists():
            state = torch.load(last, weights_only=False)
            model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.position = state["step"], tuple(state["position"])
            self.best, self.before = state["best"], state["seconds"]
            print("going on from step", self.step, flush=True)

    def seconds(self):
        return self.before + time.time() - self.started

    def progress(self):
        by_time = self.seconds() / 60 / self.args.minutes if self.args.minutes else 0.0
        return max(self.step / self.args.steps, by_time)

    def train_step(self, network, data):
        rate = learning_rate(self.args, self.step, self.progress())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        x, y, self.position = data.batch(self.position, self.args.batch)
        loss = network(x, y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.optimizer.step()
        self.step += 1
        return loss.detach()

    def report(self, train_loss, windows):
        """Validates, logs, and saves."""
        valid = validation_loss(self.model, windows, self.args.batch)
        row = {
            "step": self.step,
            "epoch": self.position[0],
            "tokens": self.step * self.args.batch * self.args.context,
            "minutes": round(self.seconds() / 60, 2),
            "train_loss": round(train_loss, 4),
            "valid_loss": round(valid, 4),
            "valid_ppl": round(math.exp(valid), 3),
        }
        with open(self.args.out / "log.jsonl", "a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
        state = {
            "config": self.model.config,
            "model": self.model.state_dict(),
            "step": self.step,
            "valid_loss": valid,
        }
        if valid < self.best:
            self.best = valid
            save(state, self.args.out / "best.pt")
        state |= {
            "optimizer": self.optimizer.state_dict(),
            "position": self.position,
            "best": self.best,
            "seconds": self.seconds(),
        }
        save(state, self.args.out / "last.pt")


def main():
    args = parse_arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=args.tokenizer)
    data, windows = read_data(args, tokenizer)
    model = make_model(args, tokenizer.vocab_size())
    print(sum(p.numel() for p in model.parameters()), "parameters", flush=True)

    run = Run(args, model)
    network = torch.compile(model) if args.compile else model
    model.train()
    while run.progress() < 1:
        losses, n = 0.0, 0
        while n == 0 or (run.step % args.every and run.progress() < 1):
            losses += run.train_step(network, data)
            n += 1
        run.report(float(losses) / n, windows)


if __name__ == "__main__":
    main()
