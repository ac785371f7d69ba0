#!/usr/bin/env python3
"""Writes tiny_encode.json, tiny_decode.json and tiny_cases.json: what the sentencepiece Python
package says about the bundled tokenizer, for the tests of ours.

    pip install sentencepiece && python3 make_tiny.py

The texts are those of tokenizer_encode.json and the files of ../cases.
"""

import json
import pathlib
import random

import sentencepiece

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parents[2] / "models" / "openelm-tiny" / "tokenizer.model"
NO_DUMMY_PREFIX = b"\x1a\x02\x18\x00"  # normalizer_spec { add_dummy_prefix: false }
UNKNOWN = " \u2047 ".encode()


def load(model):
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return processor


def piece_bytes(processor, token):
    if processor.IsControl(token):
        return b""
    if processor.IsUnknown(token):
        return UNKNOWN
    piece = processor.IdToPiece(token)
    if processor.IsByte(token):
        return bytes([int(piece[3:5], 16)])
    return piece.replace("\u2581", " ").encode()


def decode(processor, ids):
    """The bytes of a text: the library's rule, written out, without its U+FFFD for bad bytes."""
    text = b""
    at_start = True
    for token in ids:
        part = piece_bytes(processor, token)
        if part and at_start:
            at_start = False
            if processor.IdToPiece(token).startswith("\u2581"):
                part = part[1:]
        text += part
    return text


def texts():
    golden = json.loads((HERE / "tokenizer_encode.json").read_text(encoding="utf-8"))
    yield from (bytes.fromhex(case["utf8_hex"]) for case in golden["cases"])
    yield from (text.encode() for text in ("\ufeffmark", "a\0b", "\0", " <unk>", "<s></s>"))


def id_lists(processor):
    yield []
    yield from ([t] for t in (0, 1, 2, 3, 35, 68, 131, 243, 258))
    yield from ([0, 0], [1, 0, 2], [1, 35, 68], [243, 162], [131, 243, 162, 155, 131, 68])
    for text in texts():
        ids = processor.EncodeAsIds(text.decode())
        yield [1] + ids + [2]
        yield ids[: len(ids) // 2]
    rng = random.Random(7)
    for _ in range(60):
        yield [rng.randrange(processor.GetPieceSize()) for _ in range(rng.randint(1, 12))]
    for _ in range(60):
        yield [rng.randrange(300) for _ in range(rng.randint(1, 12))]


def write(name, value):
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    (HERE / name).write_text(text.replace("},{", "},\n{") + "\n", encoding="ascii")


def main():
    model = MODEL.read_bytes()
    whole, continuation = load(model), load(model + NO_DUMMY_PREFIX)

    write("tiny_encode.json", {"cases": [
        {"utf8_hex": text.hex(), "ids": whole.EncodeAsIds(text.decode()),
         "continuation_ids": continuation.EncodeAsIds(text.decode())} for text in texts()]})

    decoded = []
    for ids in id_lists(whole):
        text = decode(whole, ids)
        if b"\xef\xbf\xbd" not in whole.DecodeIds(ids).encode():
            assert whole.DecodeIds(ids).encode() == text, ids
        decoded.append({"ids": ids, "bytes_hex": text.hex()})
    write("tiny_decode.json", {"cases": decoded})

    files = {}
    for file in sorted((HERE.parent / "cases").iterdir()):
        if file.name == "tokens_expected.json" or file.suffix in (".json", ".jsonl"):
            continue
        ids = whole.EncodeAsIds(file.read_bytes().decode())
        short = len(ids) <= 100
        files[file.name] = {"n": len(ids),
                            "ids": ids if short else {"first": ids[:8], "last": ids[-8:]}}
    write("tiny_cases.json", files)


if __name__ == "__main__":
    main()
