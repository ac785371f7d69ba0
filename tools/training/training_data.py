"""Windows of tokens to learn from: packed tales (Tales), and question/answer pairs (Pairs).

Both give `batch(position, size)` -> (inputs, targets, next position), a function of the seed and
the position alone, so that an interrupted run goes on with what it would have seen.
"""

import hashlib
import json
import pathlib

import numpy as np
import torch

from openelm_torch import IGNORED

BOS, EOS = 1, 2


def read_tales(path, tokenizer):
    """[(tokens with the title and a blank line before the text, tokens of the text)]; kept in a
    file beside `path` for the next time."""
    stamp = hashlib.sha256(tokenizer.serialized_model_proto() + path.read_bytes()).hexdigest()[:16]
    cache = path.with_name(f"{path.name}.{stamp}.npz")
    if cache.exists():
        z = np.load(cache)
        titled, text = np.split(z["titled"], z["cut_titled"]), np.split(z["text"], z["cut_text"])
        return list(zip(titled, text))
    out = []
    for tale in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        text = np.array(tokenizer.encode(tale["text"]), dtype=np.uint16)
        titled = text
        if tale["title"]:
            ids = tokenizer.encode(f"{tale['title']}\n\n{tale['text']}")
            titled = np.array(ids, dtype=np.uint16)
        out.append((titled, text))
    np.savez(
        cache,
        titled=np.concatenate([t for t, _ in out]),
        cut_titled=np.cumsum([len(t) for t, _ in out])[:-1],
        text=np.concatenate([t for _, t in out]),
        cut_text=np.cumsum([len(t) for _, t in out])[:-1],
    )
    return out


class Tales:
    """Every epoch the tales are shuffled, half of them get their title as first line, each is put
    between BOS and EOS, and the stream is cut into windows, elsewhere in each epoch."""

    def __init__(self, tales, context, seed):
        self.tales, self.width, self.seed = tales, context + 1, seed
        self.epoch, self.windows = -1, None

    def start(self, epoch):
        if epoch == self.epoch:
            return
        rng = np.random.default_rng([self.seed, epoch])
        parts = []
        for i in rng.permutation(len(self.tales)):
            parts += [[BOS], self.tales[i][int(rng.random() < 0.5)], [EOS]]
        stream = np.concatenate(parts).astype(np.int64)
        stream = stream[rng.integers(self.width) :]
        n = len(stream) // self.width
        windows = stream[: n * self.width].reshape(n, self.width)
        self.epoch, self.windows = epoch, windows[rng.permutation(n)]

    def batch(self, position, size):
        epoch, at = position
        self.start(epoch)
        if at + size > len(self.windows):
            epoch, at = epoch + 1, 0
            self.start(epoch)
        w = torch.from_numpy(self.windows[at : at + size])
        return w[:, :-1].contiguous(), w[:, 1:].contiguous(), (epoch, at + size)


def validation_windows(tales, context):
    """[(inputs, targets)] of the tales in order, titles included."""
    parts = [np.concatenate([[BOS], titled, [EOS]]) for titled, _ in tales]
    stream = torch.from_numpy(np.concatenate(parts).astype(np.int64))
    starts = range(0, (len(stream) - 1) // context * context, context)
    return [(stream[i : i + context][None], stream[i + 1 : i + 1 + context][None]) for i in starts]


def encode_pair(pair, tokenizer, rng):
    """(tokens, whether each is learned) of {"turns": [[question, answer], ...]}: each turn is
    "User: question\\nAssistant:" + answer + EOS."""
    ids, learn = [BOS], [False]
    for n, (question, answer) in enumerate(pair["turns"]):
        # In a longer talk a program may keep the EOS after each answer, or not: both are learned.
        if n and rng.random() < 0.5:
            ids.pop()
            learn.pop()
        head = tokenizer.encode(("\n" if n else "") + f"User: {question}\nAssistant:")
        if n and tokenizer.id_to_piece(head[0]) == "\u2581":
            head = head[1:]  # the space that the tokenizer puts in front of a text
        body = tokenizer.encode(answer)
        ids += head + body + [EOS]
        learn += [False] * len(head) + [True] * (len(body) + 1)
    return ids, learn


class Pairs:
    """Whole pairs packed into windows, first fit; only answers are learned."""

    def __init__(self, path, tokenizer, context, seed):
        self.width, self.seed, self.tokenizer = context + 1, seed, tokenizer
        self.pairs = [json.loads(x) for x in pathlib.Path(path).read_text("utf-8").splitlines()]
        self.epoch, self.ids, self.learn = -1, None, None

    def rows(self, rng):
        rows, open_rows = [], []
        for i in rng.permutation(len(self.pairs)):
            ids, learn = encode_pair(self.pairs[i], self.tokenizer, rng)
            ids, learn = ids[: self.width], learn[: self.width]
            for row in open_rows:
                if len(row[0]) + len(ids) <= self.width:
                    row[0].extend(ids)
                    row[1].extend(learn)
                    break
            else:
                row = (ids, learn)
                rows.append(row)
                open_rows = [r for r in open_rows if len(r[0]) < self.width - 40][-30:] + [row]
        return rows

    def start(self, epoch):
        if epoch == self.epoch:
            return
        rng = np.random.default_rng([self.seed, epoch])
        rows = self.rows(rng)
        all_ids = np.full((len(rows), self.width), EOS, dtype=np.int64)
        all_learn = np.zeros((len(rows), self.width), dtype=bool)
        for n, (ids, learn) in enumerate(rows):
            all_ids[n, : len(ids)], all_learn[n, : len(ids)] = ids, learn
        order = rng.permutation(len(rows))
        self.epoch, self.ids, self.learn = epoch, all_ids[order], all_learn[order]

    def batch(self, position, size):
        epoch, at = position
        self.start(epoch)
        if at + size > len(self.ids):
            epoch, at = epoch + 1, 0
            self.start(epoch)
        ids = torch.from_numpy(self.ids[at : at + size])
        targets = torch.where(torch.from_numpy(self.learn[at : at + size]), ids, IGNORED)
        return ids[:, :-1].contiguous(), targets[:, 1:].contiguous(), (epoch, at + size)

    def windows(self):
        """All windows of the first epoch, one by one, for validation."""
        self.start(0)
        return [self.batch((0, i), 1)[:2] for i in range(len(self.ids))]
