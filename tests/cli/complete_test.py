"""complete: what is generated, when it ends, and what is said about it."""

import json
import os
import unittest

from program import (
    BOS,
    CASES,
    EOS,
    INSTRUCT,
    NEWLINE,
    SPACE,
    TINY,
    assert_one_line,
    byte_ids,
    complete_json,
    force,
    run,
    succeed,
    tokenize,
)

CAT = byte_ids("\U0001f638")


def ids_option(ids):
    return " ".join(map(str, ids))


class Streaming(unittest.TestCase):
    def test_stream_equals_the_whole_text(self):
        for path in ("b01_emoji.txt", "b02_cut_midchar.txt", "b16_eos_text.txt", "b06_accents.txt"):
            same = ["complete", "-f", CASES / path, "-n", 40, "--seed", 7, "--ignore-eos"]
            stream = succeed(*same).out
            self.assertEqual(stream, succeed(*same, "--no-stream").out)
            self.assertGreater(len(stream), 40)

    def test_characters_of_several_tokens(self):
        result = succeed("complete", "-f", CASES / "b01_emoji.txt", "-n", 12, *force(CAT))
        self.assertEqual(result.text, "\U0001f638" * 3)
        self.assertEqual(result.err, "")

    def test_end_in_the_middle_of_a_character(self):
        cat = "\U0001f638".encode()
        for n in (1, 2, 3):
            options = ["-f", CASES / "b02_cut_midchar.txt", "-n", n, *force(CAT)]
            result = succeed("complete", *options)
            self.assertEqual(result.out, cat[:n])
            self.assertIn("inside a character", result.err)
            answer = complete_json(*options)
            self.assertEqual(answer["text"], "\ufffd" * n)
            self.assertEqual(answer["tokens"], CAT[:n])
        self.assertNotIn("inside", succeed("complete", "-p", "A", "-n", 4, *force(CAT)).err)

    def test_echo(self):
        plain = succeed("complete", "-p", "Once upon", "-n", 5, "--seed", 1).out
        echoed = succeed("complete", "-p", "Once upon", "-n", 5, "--seed", 1, "--echo").out
        self.assertEqual(echoed, b"Once upon" + plain)
        answer = complete_json("-p", "Once upon", "-n", 5, "--seed", 1, "--echo")
        self.assertEqual(answer["text"].encode(), echoed)


class Stops(unittest.TestCase):
    # A cycle of tokens that spells " fox\nUser:" with the stop string over four tokens.
    def setUp(self):
        space, line_end, *user = tokenize("\nUser:")
        self.assertEqual((space, line_end), (SPACE, NEWLINE))
        self.fox = [i for i in tokenize("fox") if i not in user]
        self.stop = [NEWLINE, *user]
        self.assertGreater(len(self.stop), 3)
        self.options = ["-p", "A", "-n", 60, *force([*self.fox, *self.stop])]

    def generate(self, *stops):
        arguments = [word for stop in stops for word in ("--stop", stop)]
        answer = complete_json(*self.options, *arguments)
        self.assertEqual(succeed("complete", *self.options, *arguments).text, answer["text"])
        return answer

    def test_a_stop_string_over_several_tokens(self):
        answer = self.generate("\nUser:")
        self.assertEqual(answer["text"], " fox")
        self.assertEqual((answer["finish_reason"], answer["stop"]), ("stop", "\nUser:"))
        self.assertEqual(answer["usage"]["completion_tokens"], len(self.fox) + len(self.stop))

    def test_a_beginning_that_goes_on_otherwise_is_printed(self):
        answer = self.generate("\nUser!")
        self.assertTrue(answer["text"].startswith(" fox\nUser: fox\nUser:"))
        self.assertEqual((answer["finish_reason"], answer["stop"]), ("length", None))

    def test_a_held_back_tail_is_printed_at_the_end(self):
        n = len(self.fox) + 2
        options = ["-p", "A", "-n", n, *force([*self.fox, *self.stop]), "--stop", "\nUser: nobody"]
        self.assertTrue(succeed("complete", *options).text.startswith(" fox\nU"))

    def test_the_first_to_be_complete_fires(self):
        self.assertEqual(self.generate("\nUser:", "\nUs")["stop"], "\nUs")
        self.assertEqual(self.generate("\nUs", "\nUser:")["text"], " fox")
        self.assertEqual(self.generate("ox", "\nUs")["text"], " f")

    def test_a_stop_string_in_the_prompt_does_not_fire(self):
        answer = complete_json(
            "-p", "User: hi\nUser:", "-n", 2, "--stop", "\nUser:", *force(self.fox + [SPACE])
        )
        self.assertEqual(answer["finish_reason"], "length")

    def test_cases(self):
        for name in ("b09_stop.json", "b09_stop_newline.json"):
            case = json.loads((CASES / name).read_text())
            stop = case["stop"][0]
            answer = complete_json(
                "-p", case["prompt"], "--stop", stop, "-n", case["max_tokens"], "--temperature", 0
            )
            self.assertNotIn(stop, answer["text"])

    def test_an_empty_stop_string_is_refused(self):
        assert_one_line(self, run("complete", "-p", "A", "--stop", ""), 2, "--stop")


class EndOfText(unittest.TestCase):
    EOS_ALWAYS = ["--logit-bias", f"{EOS}=1000"]

    def test_eos_ends_without_text(self):
        answer = complete_json("-p", "A", *self.EOS_ALWAYS)
        self.assertEqual((answer["text"], answer["tokens"]), ("", []))
        self.assertEqual((answer["finish_reason"], answer["stop"]), ("stop", None))

    def test_ignore_eos_gives_exactly_n(self):
        for sampling in ([], ["--top-k", 1], ["--temperature", 0]):
            tokens = complete_json(
                "-p", "A", "--ignore-eos", "-n", 50, *sampling, *self.EOS_ALWAYS
            )["tokens"]
            self.assertEqual(len(tokens), 50)
            self.assertNotIn(EOS, tokens)

    def test_no_tokens(self):
        answer = complete_json("-p", "A", "-n", 0)
        self.assertEqual((answer["text"], answer["finish_reason"]), ("", "length"))


class Sampling(unittest.TestCase):
    def tokens(self, *options):
        return complete_json("-p", "Once upon a time", "-n", 30, *options)["tokens"]

    def test_temperature_zero_is_greedy(self):
        greedy = self.tokens("--temperature", 0)
        self.assertEqual(greedy, self.tokens("--temperature", 0, "--seed", 5))
        self.assertEqual(greedy, self.tokens("--top-k", 1))
        self.assertEqual(greedy, self.tokens("--top-p", 0))
        self.assertEqual(greedy, self.tokens("--temperature", "1e-30"))
        self.assertNotEqual(greedy, self.tokens("--temperature", 1, "--seed", 5))

    def test_same_seed_same_text(self):
        one = self.tokens("--seed", 3, "-t", 1)
        for threads in (2, 3, 7, 16):
            self.assertEqual(self.tokens("--seed", 3, "-t", threads), one)
        self.assertNotEqual(self.tokens("--seed", 4), one)

    def test_a_random_seed_is_told_and_can_be_used_again(self):
        first = complete_json("-p", "Once", "-n", 30, "--temperature", 1.5)
        again = complete_json("-p", "Once", "-n", 30, "--temperature", 1.5, "--seed", first["seed"])
        other = complete_json("-p", "Once", "-n", 30, "--temperature", 1.5)
        self.assertEqual(first["tokens"], again["tokens"])
        self.assertNotEqual(first["seed"], other["seed"])

    def test_repetition_penalty_over_everything(self):
        def penalised(penalty, window):
            return complete_json(
                "-f",
                CASES / "b26_repeat.txt",
                "-n",
                40,
                "--temperature",
                0,
                "--repetition-penalty",
                penalty,
                "--repetition-window",
                window,
            )["tokens"]

        everything = penalised(1.5, -1)
        self.assertNotEqual(everything, penalised(1.0, -1))
        self.assertEqual(everything, penalised(1.5, 512))
        self.assertEqual(penalised(1.5, 0), penalised(1.0, -1))

    def test_bias_forbids(self):
        first = self.tokens("--temperature", 0)[0]
        self.assertNotIn(first, self.tokens("--temperature", 0, "--logit-bias", f"{first}=-inf"))


class Json(unittest.TestCase):
    def test_fields(self):
        answer = complete_json("-p", "Once upon", "-n", 6, "--ignore-eos", "--seed", 2)
        self.assertEqual(
            list(answer),
            ["prompt", "text", "tokens", "finish_reason", "stop", "seed", "usage", "timings"],
        )
        self.assertEqual(answer["prompt"], "Once upon")
        self.assertEqual(
            answer["usage"],
            {"prompt_tokens": 1 + len(tokenize("Once upon")), "completion_tokens": 6},
        )
        self.assertEqual(len(answer["tokens"]), 6)
        timings = answer["timings"]
        self.assertEqual(
            set(timings),
            {
                "load_ms",
                "prompt_ms",
                "generate_ms",
                "prompt_tokens_per_second",
                "tokens_per_second",
            },
        )
        for name, value in timings.items():
            self.assertGreater(value, 0, name)
        self.assertAlmostEqual(timings["tokens_per_second"] * timings["generate_ms"] / 1000, 6, 6)

    def test_logprobs(self):
        answer = complete_json("-p", "Once upon", "-n", 4, "--temperature", 0, "--logprobs", 3)
        self.assertEqual([entry["token"] for entry in answer["logprobs"]], answer["tokens"])
        for entry in answer["logprobs"]:
            top = entry["top_logprobs"]
            self.assertEqual(len(top), 3)
            self.assertEqual(top[0]["token"], entry["token"])  # greedy: the best is chosen
            self.assertEqual(top[0]["logprob"], entry["logprob"])
            self.assertGreater(top[0]["logprob"], top[1]["logprob"])
            self.assertLess(top[0]["logprob"], 0)
        alone = complete_json("-p", "Once upon", "-n", 1, "--logprobs", 0)["logprobs"]
        self.assertEqual(alone[0]["top_logprobs"], [])

    def test_ids_need_no_tokenizer(self):
        ids = [BOS, *tokenize("Once upon a time")]
        by_text = complete_json("-p", "Once upon a time", "-n", 8, "--temperature", 0)
        by_ids = complete_json("--ids", ids_option(ids), "-n", 8, "--temperature", 0)
        self.assertEqual(by_ids["tokens"], by_text["tokens"])
        self.assertEqual((by_ids["text"], by_ids["prompt"]), (None, None))
        text = succeed("complete", "--ids", ids_option(ids), "-n", 8, "--temperature", 0).text
        self.assertEqual(text, by_text["text"])

    def test_no_bos(self):
        plain = complete_json("-p", "Once", "-n", 1, "--no-bos")
        self.assertEqual(plain["usage"]["prompt_tokens"], len(tokenize("Once")))
        assert_one_line(self, run("complete", "-p", "", "--no-bos"), 2, "no tokens")

    def test_bos_alone_begins_a_text(self):
        answer = complete_json("-p", "", "-n", 6, "--temperature", 0)
        self.assertEqual(answer["usage"]["prompt_tokens"], 1)
        self.assertFalse(answer["text"].startswith(" "))


class Prompt(unittest.TestCase):
    def test_sources_are_equal(self):
        path = CASES / "b36_short_paragraph.txt"
        options = ["-n", 5, "--temperature", 0, "--echo"]
        expected = succeed("complete", "-f", path, *options).out
        self.assertTrue(expected.startswith(path.read_bytes()))
        self.assertEqual(succeed("complete", *options, stdin=path.read_bytes()).out, expected)
        self.assertEqual(
            succeed("complete", "-f", "-", *options, stdin=path.read_bytes()).out, expected
        )
        self.assertEqual(succeed("complete", "-p", path.read_text(), *options).out, expected)

    def test_warnings(self):
        bos = succeed("complete", "-f", CASES / "b15_bos_text.txt", "-n", 1)
        self.assertIn("warning", bos.err)
        self.assertIn("BOS", bos.err)
        space = succeed("complete", "-f", CASES / "b17_trailing_space.txt", "-n", 1)
        self.assertIn("ends in a space", space.err)
        self.assertEqual(succeed("complete", "-f", CASES / "b17_join_a.txt", "-n", 1).err, "")

    def test_longer_than_the_context(self):
        path = CASES / "b31_long_prompt.txt"
        tokens = len(tokenize(path.read_text())) + 1
        assert_one_line(self, run("complete", "-f", path), 1, tokens, 512)

    def test_context_minus_one_equal_and_one_more(self):
        ids = [BOS, *tokenize("Once upon a time there was a king.")]
        context = len(ids)
        for n, room in ((context - 1, 1), (context, 0)):
            answer = complete_json(
                "--ids", ids_option(ids[:n]), "--context", context, "--ignore-eos"
            )
            self.assertEqual(len(answer["tokens"]), room)
            self.assertEqual(answer["finish_reason"], "context")
        too_long = run("complete", "--ids", ids_option([*ids, 5]), "--context", context, "--json")
        assert_one_line(self, too_long, 1, context + 1, context)

    def test_the_context_is_filled_and_not_overrun(self):
        answer = complete_json("-p", "Once", "--ignore-eos", "--context", 40, "--seed", 1)
        self.assertEqual(answer["finish_reason"], "context")
        self.assertEqual(sum(answer["usage"].values()), 40)
        assert_one_line(self, run("complete", "-p", "A", "--context", 513), 2, "context", 512, 513)

    def test_stats(self):
        result = succeed("complete", "-p", "Once", "-n", 3, "--stats", "--seed", 77, "--ignore-eos")
        prompt, generation, loading, setup = result.err.splitlines()
        self.assertRegex(
            prompt, rf"^prompt: +{1 + len(tokenize('Once'))} tokens, [\d.]+ ms, [\d.]+ tok"
        )
        self.assertRegex(generation, r"^generation: 3 tokens, .*length$")
        self.assertRegex(loading, r"^loading: +[\d.]+ ms$")
        self.assertIn("seed 77", setup)

    def test_every_isa_and_cache_type(self):
        used = succeed("--version").text.splitlines()[1].split(":")[1].split()
        texts = set()
        for isa in used:
            result = run("complete", "-p", "Once", "-n", 20, "--temperature", 0, "--isa", isa)
            if result.status == 2:
                self.assertIn("not supported by this CPU", result.err)
            else:
                texts.add(result.out)
        self.assertEqual(len(texts), 1)  # all variants compute the same bits
        for kv_type in ("f32", "f16", "bf16", "q8"):
            succeed("complete", "-p", "Once", "-n", 5, "--kv-type", kv_type)
        for compute in ("exact", "fast"):
            succeed("complete", "-p", "Once", "-n", 5, "--compute", compute)

    def test_environment_names_model_and_isa(self):
        env = {**os.environ, "OPENELM_MODEL": str(INSTRUCT), "OPENELM_ISA": "scalar"}
        result = succeed("complete", "-p", "A", "-n", 1, "--stats", env=env)
        self.assertIn("scalar kernels", result.err)
        other = succeed("complete", "--json", "-p", "A", "-n", 9, "--temperature", 0, env=env).json
        instruct = complete_json("-m", INSTRUCT, "-p", "A", "-n", 9, "--temperature", 0)
        tiny = complete_json("-m", TINY, "-p", "A", "-n", 9, "--temperature", 0)
        self.assertEqual(other["tokens"], instruct["tokens"])
        self.assertNotEqual(other["tokens"], tiny["tokens"])


if __name__ == "__main__":
    unittest.main()
