"""tokenize and detokenize: bytes in and bytes out, exactly."""

import json
import unittest

from program import (
    BOS,
    CASES,
    EOS,
    LLAMA_TOKENIZER,
    NEWLINE,
    SPACE,
    assert_one_line,
    byte_ids,
    run,
    succeed,
    tokenize,
)

TEXTS = [
    "",
    " ",
    "\n",
    "a",
    "Once upon a time",
    "  two  spaces  ",
    "tab\tand\r\nCRLF\r\n",
    "nul\0inside",
    "\u00e9\u00f9 \u4f60\u597d \U0001f642",
    "<s></s><unk><0x0A>",
    "\u2581mark",
    "e\u0301",
]


class Tokenize(unittest.TestCase):
    def test_round_trip_of_bytes(self):
        for text in TEXTS:
            with self.subTest(text):
                ids = succeed("tokenize", stdin=text.encode()).out
                # U+2581 is how the vocabulary spells a space.
                expected = text.replace("\u2581", " ").encode()
                self.assertEqual(succeed("detokenize", stdin=ids).out, expected)

    def test_files_keep_every_byte_but_the_byte_order_mark(self):
        for path in sorted(CASES.glob("b*.*")):
            if path.name in ("b38_badutf8.jsonl", "b31_long_prompt.txt"):
                continue
            with self.subTest(path.name):
                ids = succeed("tokenize", "-f", path).out
                self.assertEqual(succeed("detokenize", stdin=ids).out, path.read_bytes())
        self.assertEqual(tokenize("\ufeffHi"), tokenize("Hi"))
        self.assertNotEqual(tokenize("Hi\ufeff"), tokenize("Hi"))

    def test_forms(self):
        ids = succeed("tokenize", "Once upon").text
        self.assertEqual(ids, succeed("tokenize", "--ids", "Once upon").text)
        numbers = [int(word) for word in ids.split()]
        self.assertEqual(ids, " ".join(map(str, numbers)) + "\n")
        pieces = succeed("tokenize", "--pieces", "Once upon").text.splitlines()
        self.assertEqual("".join(pieces), "\u2581Once\u2581upon")
        self.assertEqual(succeed("tokenize", "--count", "Once upon").text, f"{len(numbers)}\n")
        self.assertEqual(
            succeed("tokenize", "--json", "Once upon").json,
            {"ids": numbers, "pieces": pieces, "count": len(numbers)},
        )
        self.assertEqual(succeed("tokenize", "").text, "\n")

    def test_bos_and_eos_only_when_asked_for(self):
        plain = tokenize("Hi")
        self.assertEqual(tokenize("Hi", "--bos", "--eos"), [BOS, *plain, EOS])
        self.assertNotIn(BOS, plain)

    def test_control_text_is_plain_text(self):
        for name in ("b15_bos_text.txt", "b16_eos_text.txt"):
            ids = tokenize((CASES / name).read_text(encoding="utf-8"), "--bos")
            self.assertEqual(ids.count(BOS), 1)
            self.assertNotIn(EOS, ids)
            self.assertNotIn(0, ids)
        self.assertNotIn(NEWLINE, tokenize("<0x0A>"))

    def test_the_leading_space_is_there_once(self):
        whole = tokenize(
            (CASES / "b17_join_a.txt").read_text() + (CASES / "b17_join_b.txt").read_text()
        )
        apart = tokenize((CASES / "b17_join_b.txt").read_text())
        self.assertEqual(apart[0], SPACE)  # its own space comes after the one in front of a text
        self.assertEqual(whole[-len(apart) + 1 :], apart[1:])
        self.assertNotIn(SPACE, whole)

    def test_nul_and_line_ends(self):
        ids = tokenize((CASES / "b19_nul.bin").read_text())
        self.assertEqual(ids.count(3), 1)
        self.assertNotIn(ids.index(3), (0, len(ids) - 1))
        crlf = tokenize((CASES / "b21_crlf.txt").read_bytes().decode())
        lf = tokenize((CASES / "b21_lf.txt").read_text())
        self.assertEqual(
            crlf, [i for j in lf for i in ([*byte_ids("\r"), j] if j == NEWLINE else [j])]
        )
        self.assertEqual(tokenize((CASES / "b21_nonl.txt").read_text()), lf[:-1])

    def test_faults(self):
        assert_one_line(self, run("tokenize", stdin=b"ab\xff"), 1, "standard input", "byte 2")
        assert_one_line(self, run("tokenize", b"ab\xc3"), 1, "byte 2")
        assert_one_line(
            self, run("tokenize", "-f", CASES / "b38_badutf8.jsonl"), 1, "b38_badutf8.jsonl"
        )
        assert_one_line(self, run("tokenize", "-f", "/nowhere/x"), 1, "/nowhere/x")
        assert_one_line(self, run("tokenize", "-f", CASES), 1, str(CASES))
        assert_one_line(self, run("detokenize", "4096"), 2, "4095")
        assert_one_line(self, run("detokenize", "--", "-1"), 2, "'-1'")
        assert_one_line(self, run("detokenize", "5x"), 2, "'5x'")

    def test_ids_as_arguments(self):
        ids = tokenize("Once upon a time")
        self.assertEqual(succeed("detokenize", *ids).text, "Once upon a time")
        self.assertEqual(succeed("detokenize", ",".join(map(str, ids))).text, "Once upon a time")


@unittest.skipUnless(LLAMA_TOKENIZER, "OPENELM_LLAMA_TOKENIZER names no file")
class LlamaTokenizer(unittest.TestCase):
    def test_ids_of_the_cases(self):
        expected = json.loads((CASES / "tokens_expected.json").read_text(encoding="utf-8"))
        for name, entry in expected.items():
            if name.startswith("_") or not (CASES / name).exists():
                continue
            with self.subTest(name):
                ids = succeed(
                    "tokenize", "--tokenizer", LLAMA_TOKENIZER, "--json", "-f", CASES / name
                ).json["ids"]
                self.assertEqual(len(ids), entry["n"])
                if isinstance(entry["ids"], list):
                    self.assertEqual(ids, entry["ids"])
                else:
                    n = len(entry["ids"]["first"])
                    self.assertEqual(ids[:n], entry["ids"]["first"])
                    self.assertEqual(ids[-n:], entry["ids"]["last"])


if __name__ == "__main__":
    unittest.main()
