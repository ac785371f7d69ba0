"""chat with its input from a pipe: every line is a turn."""

import json
import unittest

from program import (
    BOS,
    EOS,
    INSTRUCT,
    NEWLINE,
    SPACE,
    TINY,
    assert_one_line,
    byte_ids,
    complete_json,
    continuation,
    force,
    run,
    succeed,
    tokenize,
)


def chat(lines, *options):
    """The objects that --json prints, one a turn, and what was said on stderr."""
    result = succeed("chat", "--json", *options, stdin=lines.encode())
    return [json.loads(line) for line in result.text.splitlines()], result.err


def user_ids(message, first):
    if first:
        return tokenize(f"User: {message}\nAssistant:")
    return continuation(f"\nUser: {message}\nAssistant:")


def answer_ids(turn):
    """The answer as it stands in the history, however it ended."""
    return turn["tokens"] + [EOS]


def conversation_ids(turns):
    """BOS and all turns; of the last one the question only."""
    ids = [BOS]
    for i, turn in enumerate(turns):
        ids += user_ids(turn["prompt"], i == 0)
        if i + 1 < len(turns):
            ids += answer_ids(turn)
    return ids


class Turns(unittest.TestCase):
    def test_ends_of_input(self):
        for lines, n in [
            ("", 0),
            ("Hi", 1),
            ("Hi\n\n", 1),
            ("\n \n\t\n", 0),
            ("Hi\nGo on.\n", 2),
            ("Hi\r\nGo on.", 2),
            ("\ufeffHi", 1),
        ]:
            with self.subTest(lines):
                turns, _ = chat(lines, "-n", 3)
                self.assertEqual([t["turn"] for t in turns], list(range(1, n + 1)))
                if turns:
                    self.assertEqual(turns[0]["prompt"], "Hi")

    def test_answers_are_lines(self):
        same = ["-m", INSTRUCT, "--temperature", 0, "-n", 20]
        turns, _ = chat("Hi\nWho are you?\n", *same)
        result = succeed("chat", *same, stdin=b"Hi\nWho are you?\n")
        self.assertEqual(result.text, "".join(t["text"] + "\n" for t in turns))
        self.assertEqual(result.err, "")
        whole = succeed("chat", *same, "--no-stream", stdin=b"Hi\nWho are you?\n")
        self.assertEqual(whole.out, result.out)
        for turn in turns:
            self.assertEqual(turn["text"], turn["text"].strip())
            self.assertGreater(len(turn["text"]), 3)

    def test_white_space_inside_an_answer_stays(self):
        same = ["-n", 10, *force([SPACE, NEWLINE, *byte_ids("x")])]
        turns, _ = chat("Hi", *same)
        self.assertEqual(turns[0]["text"], "x \nx \nx")
        self.assertEqual(succeed("chat", *same, stdin=b"Hi").text, "x \nx \nx\n")

    def test_a_slash_is_text(self):
        turns, _ = chat("/quit\nHi\n", "-n", 2)
        self.assertEqual([t["prompt"] for t in turns], ["/quit", "Hi"])

    def test_fields(self):
        turn = chat("Hi", "-n", 4, "--seed", 9)[0][0]
        self.assertEqual(
            list(turn),
            [
                "turn",
                "prompt",
                "text",
                "tokens",
                "finish_reason",
                "stop",
                "seed",
                "usage",
                "timings",
            ],
        )
        self.assertEqual(turn["seed"], 9)
        self.assertEqual(turn["usage"]["prompt_tokens"], len(conversation_ids([turn])))


class Evaluation(unittest.TestCase):
    """Turn by turn the model sees the same ids as all at once."""

    def check_last(self, turns, *options):
        ids = conversation_ids(turns)
        self.assertEqual(turns[-1]["usage"]["prompt_tokens"], len(ids))
        fresh = complete_json(
            "-m", INSTRUCT, "--ids", " ".join(map(str, ids)), "--temperature", 0, *options
        )
        self.assertEqual(turns[-1]["tokens"], fresh["tokens"])
        return turns[-1]

    def test_turns_join_without_a_space(self):
        turns, _ = chat(
            "Tell me a story about a fox.\nGo on.\nThank you.", "--temperature", 0, "-n", 30
        )
        self.assertEqual(len(turns), 3)
        for n in (1, 2, 3):
            self.check_last(turns[:n], "-n", 30)

    def test_eos_ends_an_answer_and_stays(self):
        turns, _ = chat("Hi\nGo on.", "--temperature", 0, "--logit-bias", f"{EOS}=1000")
        self.assertEqual([t["tokens"] for t in turns], [[], []])
        self.assertEqual(turns[1]["usage"]["prompt_tokens"], len(conversation_ids(turns)))

    def test_the_users_part_ends_an_answer_and_is_cut(self):
        cycle = tokenize("fox")
        cycle += [i for i in continuation("\nUser:") if i not in cycle]
        turns, _ = chat("Hi\nGo on.", "-n", 50, *force(cycle))
        self.assertEqual([t["text"] for t in turns], ["fox", "fox"])
        self.assertEqual(turns[0]["stop"], "\nUser:")
        kept = [BOS, *user_ids("Hi", True), *tokenize("fox"), EOS, *user_ids("Go on.", False)]
        self.assertEqual(turns[1]["usage"]["prompt_tokens"], len(kept))

    def test_a_stop_string_may_span_the_dropping_of_turns(self):
        """The context becomes full before, in, and after the tokens that spell the stop string."""
        words = tokenize("one two three four five six seven eight")
        stop = continuation("\nUser:")
        self.assertEqual(len(set(words + stop)), len(words + stop))
        first, second = user_ids("Hi", True), user_ids("Go on.", False)
        prompt = [BOS, *first, *words, EOS, *second]
        for room in range(len(words) - 2, len(words) + len(stop) + 2):
            turns, err = chat(
                "Hi\nGo on.\nBye.", "--context", len(prompt) + room, *force(words + stop)
            )
            self.assertEqual(turns[1]["usage"]["prompt_tokens"], len(prompt))
            for turn in turns[:2]:
                self.assertEqual(turn["stop"], "\nUser:", room)
                self.assertEqual(turn["text"], "one two three four five six seven eight", room)
                self.assertEqual(turn["tokens"], words + stop, room)
            if room < len(words + stop):
                # In the second answer the first turn was dropped; of the stop string nothing stays.
                self.assertIn("forgotten", err)
                kept = [BOS, *user_ids("Go on.", True), *words, EOS, *user_ids("Bye.", False)]
                self.assertEqual(turns[2]["usage"]["prompt_tokens"], len(kept), room)

    def test_only_what_is_new_is_evaluated(self):
        result = succeed("chat", "--stats", "-n", 20, "--ignore-eos", stdin=b"Hi\nGo on.\n")
        prompts = [line for line in result.err.splitlines() if line.startswith("prompt:")]
        evaluated = [int(line.split()[1]) for line in prompts]
        # The last token of an answer has not been evaluated when the answer ends, nor its EOS.
        self.assertEqual(evaluated[1], len(user_ids("Go on.", False)) + 2)

    def test_the_full_context_drops_whole_turns(self):
        lines = "".join(f"Question number {i}.\n" for i in range(10))
        turns, err = chat(lines, "--context", 128, "-n", 16, "--temperature", 0, "--ignore-eos")
        self.assertEqual([len(turn["tokens"]) for turn in turns], [16] * 10)
        # In one answer at least the context became full.
        self.assertTrue(any(turn["usage"]["prompt_tokens"] + 16 > 128 for turn in turns))
        self.assertRegex(err, r"context of 128 tokens is full: the oldest .* forgotten\n")
        self.assertLess(err.count("forgotten"), 5)  # half of it is freed each time
        dropped = 0
        for n in range(1, 11):
            tokens = turns[n - 1]["usage"]["prompt_tokens"]
            self.assertLess(tokens, 128)
            kept = [k for k in range(1, n + 1) if len(conversation_ids(turns[n - k : n])) == tokens]
            self.assertTrue(kept, n)
            dropped = max(dropped, n - max(kept))
            if turns[n - 1]["finish_reason"] == "length" and tokens + 16 < 128:
                self.check_last(
                    turns[n - max(kept) : n], "-n", 16, "--ignore-eos", "--context", 128
                )
        self.assertGreater(dropped, 3)
        quiet = succeed(
            "chat", "-q", "--context", 128, "-n", 16, "--ignore-eos", stdin=lines.encode()
        )
        self.assertEqual(quiet.err, "")

    def test_an_answer_that_outgrows_the_context_is_cut(self):
        turns, err = chat("Hi\nGo on.\n", "--context", 40, "--ignore-eos", "--temperature", 0)
        self.assertEqual([t["finish_reason"] for t in turns], ["context", "context"])
        self.assertIn("the answer is cut", err)
        for turn in turns:
            self.assertGreater(len(turn["tokens"]), 10)

    def test_a_message_longer_than_the_context_is_refused(self):
        message = "word " * 100
        needed = len(user_ids(message, True)) + 1
        result = run("chat", "--context", 64, stdin=message.encode())
        assert_one_line(self, result, 1, "line 1", needed, 64)

    def test_bad_utf8_names_the_line(self):
        result = run("chat", "-n", 2, stdin=b"Hi\n\nab\xff\n")
        self.assertEqual(result.status, 1)
        self.assertIn("line 3", result.err)
        self.assertIn("byte 2", result.err)


class Templates(unittest.TestCase):
    def test_none_continues_the_text(self):
        turns, _ = chat("Once upon a time", "-m", TINY, "--temperature", 0, "-n", 12)
        plain = complete_json("-m", TINY, "-p", "Once upon a time", "--temperature", 0, "-n", 12)
        self.assertEqual(turns[0]["tokens"], plain["tokens"])
        self.assertEqual(turns[0]["text"], plain["text"])
        asked, _ = chat(
            "Once upon a time", "-m", INSTRUCT, "--template", "none", "--temperature", 0, "-n", 12
        )
        self.assertEqual(asked[0]["usage"]["prompt_tokens"], plain["usage"]["prompt_tokens"])

    def test_none_is_cut_at_a_readable_length(self):
        turns, _ = chat("Once", "-m", TINY, "--ignore-eos")
        self.assertEqual(len(turns[0]["tokens"]), 128)

    def test_named_template(self):
        turns, _ = chat("Hi", "-m", TINY, "--template", "user-assistant", "-n", 2)
        self.assertEqual(turns[0]["usage"]["prompt_tokens"], len(conversation_ids(turns)))
        assert_one_line(self, run("chat", "--template", "vicuna", stdin=b"Hi"), 2, "vicuna", "chatml")

    def test_the_system_text_stands_in_front_and_stays(self):
        lines = "".join(f"Question number {i}.\n" for i in range(8))
        turns, err = chat(
            lines,
            "--system",
            "You tell tales.",
            "--context",
            128,
            "-n",
            16,
            "--ignore-eos",
            "--temperature",
            0,
        )
        self.assertIn("forgotten", err)
        opening = [BOS, *tokenize("You tell tales.")]

        def ids(kept):
            out = list(opening)
            for i, turn in enumerate(kept):
                out += user_ids(turn["prompt"], False)
                out += answer_ids(turn) if i + 1 < len(kept) else []
            return out

        for n in range(1, len(turns) + 1):
            tokens = turns[n - 1]["usage"]["prompt_tokens"]
            lengths = [len(ids(turns[n - k : n])) for k in range(1, n + 1)]
            self.assertIn(tokens, lengths)
        fresh = complete_json(
            "-m",
            INSTRUCT,
            "--ids",
            " ".join(map(str, ids(turns[:1]))),
            "--temperature",
            0,
            "-n",
            16,
            "--ignore-eos",
        )
        self.assertEqual(turns[0]["tokens"], fresh["tokens"])


if __name__ == "__main__":
    unittest.main()
