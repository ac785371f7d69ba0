"""Option values, help and version: everything that is decided before a model is loaded."""

import shlex
import unittest

from program import CASES, assert_one_line, run, succeed

COMMANDS = ["complete", "chat", "tokenize", "detokenize", "inspect", "logits", "bench"]

# The lines of b42_numbers.txt that are right; all others must be refused.
ACCEPTED = {
    "--temperature 1e-30",
    "--top-k 0",
    "--top-p 0",
    "--top-p 1",
    "--max-tokens 0",
    "--repeat-last-n -1",
    "--ctx 3",
}
# What that file's neutral words are called here.
NAMES = {
    "--ctx": "--context",
    "--repeat-last-n": "--repetition-window",
    "--repeat-penalty": "--repetition-penalty",
}


def numbers():
    for line in (CASES / "b42_numbers.txt").read_text(encoding="utf-8").splitlines():
        flag, value = shlex.split(line)
        if flag != "--batch-size":  # not an option of any command here
            yield line, NAMES.get(flag, flag), value


class Numbers(unittest.TestCase):
    def test_every_number_of_the_list(self):
        seen = set()
        for line, flag, value in numbers():
            with self.subTest(line):
                result = run("complete", "-p", "A", "-n", "1", flag, value)
                if line in ACCEPTED:
                    self.assertEqual(result.status, 0, result.err)
                    seen.add(line)
                else:
                    assert_one_line(self, result, 2, flag, repr(value))
        self.assertEqual(seen, ACCEPTED)

    def test_more_numbers(self):
        for flag, value in [
            ("--temperature", " 1"),
            ("--temperature", "0x1p3"),
            ("--temperature", "1e400"),
            ("--temperature", "-inf"),
            ("--temperature", "--top-k"),
            ("--min-p", "1.01"),
            ("--frequency-penalty", "inf"),
            ("--presence-penalty", "1,5"),
            ("--logit-bias", "13"),
            ("--logit-bias", "13=nan"),
            ("--logit-bias", "-1=2"),
            ("--logit-bias", "13=inf"),
            ("--logit-bias", "13="),
            ("--top-k", "+1 "),
            ("--seed", "1.0"),
            ("--logprobs", "-1"),
        ]:
            with self.subTest(flag=flag, value=value):
                result = run("complete", "--json", "-p", "A", "-n", "1", flag, value)
                assert_one_line(self, result, 2, flag)

    def test_what_only_the_model_can_judge(self):
        for flag, value in [
            ("--logit-bias", "4096=1"),
            ("--ids", "1 4096"),
            ("--logprobs", "4097"),
        ]:
            with self.subTest(flag):
                prompt = [] if flag == "--ids" else ["-p", "A"]
                result = run("complete", "--json", "-n", "1", *prompt, flag, value)
                assert_one_line(self, result, 2, flag.strip("-"), "4096" if "g" in flag else "4095")

    def test_the_last_of_two_counts(self):
        self.assertEqual(
            len(
                succeed("complete", "--json", "-p", "A", "-n", "9", "-n", "2", "--ignore-eos").json[
                    "tokens"
                ]
            ),
            2,
        )


class Words(unittest.TestCase):
    def test_choices_name_what_is_allowed(self):
        for flag, value, allowed in [
            ("--isa", "sse", "scalar"),
            ("--kv-type", "int4", "bf16"),
            ("--compute", "half", "exact"),
            ("--color", "red", "never"),
            ("--log-level", "loud", "warning"),
        ]:
            with self.subTest(flag):
                assert_one_line(
                    self, run("complete", "-p", "A", flag, value), 2, flag, value, allowed
                )

    def test_unknown_commands_and_options(self):
        assert_one_line(self, run("compleat"), 2, "compleat", "complete")
        assert_one_line(self, run(), 2, "no command")
        assert_one_line(self, run("complete", "-p", "A", "--adapter", "x"), 2, "--adapter")
        assert_one_line(self, run("complete", "-p"), 2, "--prompt")
        assert_one_line(self, run("complete", "-p", "A", "B"), 2, "B")

    def test_contradictions(self):
        assert_one_line(self, run("complete", "-p", "A", "-f", "x"), 2, "--prompt", "--file")
        assert_one_line(self, run("complete", "-p", "A", "--ids", "1"), 2, "--prompt", "--ids")
        assert_one_line(self, run("complete", "-p", "A", "--logprobs", "2"), 2, "--json")
        assert_one_line(self, run("logits", "-p", "A", "--top", "2", "--all"), 2, "--all", "--top")

    def test_values_may_begin_with_a_dash(self):
        result = succeed("complete", "-p", "-x y", "--echo", "-n", "0")
        self.assertEqual(result.text, "-x y")
        succeed("complete", "-p", "A", "-n", "1", "--stop", "-->", "--stop", "[a,b]")


class Help(unittest.TestCase):
    def test_every_command_ends_its_help_with_an_example(self):
        for name in COMMANDS:
            with self.subTest(name):
                result = succeed(name, "--help")
                self.assertEqual(result.err, "")
                last = result.text.rstrip().splitlines()[-1]
                self.assertRegex(last, rf"^  .*openelm {name}\b")
                self.assertIn(name, succeed("--help").text)

    def test_examples_are_valid(self):
        # Every long option that an example shows is one that the help lists.
        for name in COMMANDS:
            text = succeed(name, "--help").text
            example = text.rstrip().splitlines()[-1]
            for word in example.split():
                if word.startswith("--"):
                    self.assertIn(word, text.replace(example, ""), name)

    def test_version(self):
        first, compiled, used = succeed("--version").text.splitlines()
        self.assertRegex(first, r"^openelm \d+\.\d+\.\d+$")
        self.assertIn("scalar", compiled.split())
        self.assertIn(used.split()[-1], compiled.split())
        self.assertEqual(used.split(), succeed("--version").text.splitlines()[2].split())


if __name__ == "__main__":
    unittest.main()
