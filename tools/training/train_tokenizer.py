"""Trains the 4096-piece tokenizer: SentencePiece BPE with the settings of Llama 2's tokenizer."""

import argparse
import json
import pathlib

import sentencepiece


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=pathlib.Path, help="folder with train.jsonl")
    parser.add_argument("prefix", help="writes PREFIX.model and PREFIX.vocab")
    parser.add_argument("--vocab-size", type=int, default=4096)
    args = parser.parse_args()

    lines = []
    with open(args.corpus / "train.jsonl", encoding="utf-8") as f:
        for tale in map(json.loads, f):
            lines += [x for x in (tale["title"] + "\n" + tale["text"]).split("\n") if x]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=args.prefix,
        model_type="bpe",
        vocab_size=args.vocab_size,
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        add_dummy_prefix=True,
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        character_coverage=1.0,
        required_chars="".join(map(chr, range(33, 127))),
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=-1,
        unk_surface=" \u2047 ",
        max_sentence_length=1 << 20,
        num_threads=1,
        input_sentence_size=0,
        shuffle_input_sentence=False,
    )


if __name__ == "__main__":
    main()
