#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>
#include <openelm/generation.h>

#include "runtime/scripted_source.h"
#include "text/word_list_tokenizer.h"

namespace openelm {
namespace {

using Ids = std::vector<TokenId>;
using Parts = std::vector<std::string>;

enum Id : TokenId { kBos, kEos, kOnce, kUpon, kDot, kNewline, kUser, kColon, kF0, k9F, k98, k80 };

const WordListTokenizer& tokenizer() {
  static const WordListTokenizer instance({"<s>", "</s>", "\u2581Once", "\u2581upon", ".", "<0x0A>",
                                           "User", ":", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"});
  return instance;
}

constexpr TokenId kPromptIds[] = {kBos, kOnce};

ScriptedSource source_of(Ids script) {
  return ScriptedSource(tokenizer().vocab_size(), std::size(kPromptIds), std::move(script));
}

GenerationOptions greedy() {
  GenerationOptions options;
  options.sampling.temperature = 0.0F;
  return options;
}

struct Run {
  GenerationResult result;
  Parts parts;  // what the callback got
};

Run run(ScriptedSource& source, const GenerationOptions& options = greedy(),
        std::span<const TokenId> prompt = kPromptIds, bool at_start = false) {
  Run run;
  const auto on_text = [&](std::string_view text) {
    run.parts.emplace_back(text);
    return true;
  };
  run.result = run_generation(source, &tokenizer(), prompt, options, on_text, at_start);
  std::string joined;
  for (const std::string& part : run.parts) {
    EXPECT_FALSE(part.empty());
    joined += part;
  }
  EXPECT_EQ(joined, run.result.text) << "the stream is the text";
  return run;
}

Ids held(const LogitSource& source) { return {source.tokens().begin(), source.tokens().end()}; }

// --- Ends ---------------------------------------------------------------------------------------

TEST(Generation, EosEndsAndIsNoPartOfTheResult) {
  ScriptedSource source = source_of({kUpon, kDot, kEos});
  const auto [result, parts] = run(source);
  EXPECT_EQ(result.reason, FinishReason::stop);
  EXPECT_EQ(result.stop, std::nullopt);
  EXPECT_EQ(result.text, " upon.");
  EXPECT_EQ(result.tokens, (Ids{kUpon, kDot}));
  EXPECT_EQ(parts, (Parts{" upon", "."}));
  EXPECT_EQ(held(source), (Ids{kBos, kOnce, kUpon, kDot})) << "after EOS: every token";
}

TEST(Generation, EosAtOnceGivesNothing) {
  ScriptedSource source = source_of({kEos});
  const auto [result, parts] = run(source);
  EXPECT_EQ(result.reason, FinishReason::stop);
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(result.tokens, Ids{});
  EXPECT_EQ(held(source), (Ids{kBos, kOnce}));
}

TEST(Generation, MaxTokensIsExactAndTheLastTokenIsNotEvaluated) {
  ScriptedSource source = source_of({kUpon});
  GenerationOptions options = greedy();
  options.max_tokens = 5;
  const auto [result, parts] = run(source, options);
  EXPECT_EQ(result.reason, FinishReason::length);
  EXPECT_EQ(result.tokens, Ids(5, kUpon));
  EXPECT_EQ(source.passes, 5) << "the prompt and four tokens";
  EXPECT_EQ(held(source), (Ids{kBos, kOnce, kUpon, kUpon, kUpon, kUpon}));
}

TEST(Generation, MaxTokensOfZeroEvaluatesThePromptOnly) {
  ScriptedSource source = source_of({kUpon});
  GenerationOptions options = greedy();
  options.max_tokens = 0;
  const auto [result, parts] = run(source, options);
  EXPECT_EQ(result.reason, FinishReason::length);
  EXPECT_EQ(result.tokens, Ids{});
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(held(source), (Ids{kBos, kOnce}));
}

TEST(Generation, IgnoreEosGivesExactlyTheTokensAskedFor) {
  for (const float temperature : {0.0F, 0.8F}) {
    for (const std::int32_t top_k : {0, 1, 40}) {
      ScriptedSource source = source_of({kEos});
      source.wish = 1000.0F;
      GenerationOptions options;
      options.max_tokens = 50;
      options.ignore_eos = true;
      options.sampling.temperature = temperature;
      options.sampling.top_k = top_k;
      const auto [result, parts] = run(source, options);
      EXPECT_EQ(result.reason, FinishReason::length);
      EXPECT_EQ(result.tokens.size(), 50U);
      EXPECT_EQ(std::count(result.tokens.begin(), result.tokens.end(), kEos), 0);
    }
  }
}

TEST(Generation, PromptAndTokensTogetherNeverExceedTheContext) {
  for (const std::int32_t context : {2, 3, 4, 7}) {
    ScriptedSource source = source_of({kUpon});
    source.context_size = context;
    const auto [result, parts] = run(source);
    EXPECT_EQ(result.reason, FinishReason::context);
    EXPECT_EQ(result.tokens, Ids(static_cast<std::size_t>(context) - 2, kUpon));
  }
}

TEST(Generation, TheLimitReachedAtTheContextsEndIsALengthAndEosAStop) {
  ScriptedSource source = source_of({kUpon, kDot});
  source.context_size = 4;
  GenerationOptions options = greedy();
  options.max_tokens = 2;
  EXPECT_EQ(run(source, options).result.reason, FinishReason::length);

  ScriptedSource ends = source_of({kUpon, kEos});
  ends.context_size = 4;
  EXPECT_EQ(run(ends).result.reason, FinishReason::stop);
}

TEST(Generation, APromptLongerThanTheContextIsAnErrorWithBothNumbers) {
  ScriptedSource source = source_of({kUpon});
  source.context_size = 1;
  try {
    run(source);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "2 tokens do not fit the context of 1");
  }
}

// --- Stop strings -------------------------------------------------------------------------------

GenerationOptions stopping_at(std::vector<std::string> stop) {
  GenerationOptions options = greedy();
  options.stop = std::move(stop);
  options.max_tokens = 20;
  return options;
}

TEST(Generation, AStopStringAcrossTokensIsCutAndItsStartNeverShown) {
  ScriptedSource source = source_of({kUpon, kDot, kNewline, kUser, kColon, kOnce});
  const auto [result, parts] = run(source, stopping_at({"\nUser:"}));
  EXPECT_EQ(result.reason, FinishReason::stop);
  EXPECT_EQ(result.stop, "\nUser:");
  EXPECT_EQ(result.text, " upon.");
  EXPECT_EQ(parts, (Parts{" upon", "."}));
  EXPECT_EQ(result.tokens, (Ids{kUpon, kDot, kNewline, kUser, kColon}))
      << "all that were generated";
  EXPECT_EQ(held(source), (Ids{kBos, kOnce, kUpon, kDot, kNewline, kUser}));
}

TEST(Generation, AStopStringThatDoesNotComeIsGivenBack) {
  ScriptedSource source = source_of({kNewline, kUser, kDot, kNewline, kUser, kEos});
  const auto [result, parts] = run(source, stopping_at({"\nUser:"}));
  EXPECT_EQ(result.reason, FinishReason::stop);
  EXPECT_EQ(result.stop, std::nullopt);
  EXPECT_EQ(parts, (Parts{"\nUser.", "\nUser"}));
}

TEST(Generation, TheTextIsCutInsideAToken) {
  ScriptedSource source = source_of({kOnce, kUpon});
  const auto [result, parts] = run(source, stopping_at({"po"}));
  EXPECT_EQ(result.text, " Once u");
  EXPECT_EQ(result.tokens, (Ids{kOnce, kUpon}));
}

TEST(Generation, OfTwoStopStringsThePrefixFires) {
  ScriptedSource source = source_of({kUpon, kUser, kColon});
  const auto [result, parts] = run(source, stopping_at({"User:", "User"}));
  EXPECT_EQ(result.stop, "User");
  EXPECT_EQ(result.tokens, (Ids{kUpon, kUser}));
}

TEST(Generation, AStopStringInThePromptDoesNotFire) {
  const Ids prompt = {kUser, kColon};
  ScriptedSource source = source_of({kColon, kDot, kEos});
  const auto [result, parts] = run(source, stopping_at({"User:"}), prompt);
  EXPECT_EQ(result.stop, std::nullopt);
  EXPECT_EQ(result.text, ":.") << "nor one that begins in it";
}

TEST(Generation, AStopStringBeatsTheTokenLimitAndAnEmptyOneIsRefused) {
  ScriptedSource source = source_of({kUpon, kUser});
  GenerationOptions options = stopping_at({"User"});
  options.max_tokens = 2;
  EXPECT_EQ(run(source, options).result.reason, FinishReason::stop);
  ScriptedSource untouched = source_of({kUpon});
  EXPECT_THROW(run(untouched, stopping_at({"a", ""})), UsageError);
  EXPECT_EQ(untouched.passes, 0) << "before the prompt is evaluated";
}

// --- Characters ---------------------------------------------------------------------------------

TEST(Generation, ACharacterOfSeveralTokensComesWhole) {
  ScriptedSource source = source_of({kF0, k9F, k98, k80, kF0, k9F, k98, k80, kDot, kEos});
  EXPECT_EQ(run(source).parts, (Parts{"\U0001F600", "\U0001F600", "."}));
}

TEST(Generation, AnUnfinishedCharacterIsGivenOutAsItsBytesAtTheEnd) {
  ScriptedSource source = source_of({kUpon, kF0, k9F, k98, k80});
  for (const std::int32_t max_tokens : {2, 3, 4}) {
    source.rewind(0);
    GenerationOptions options = greedy();
    options.max_tokens = max_tokens;
    const auto [result, parts] = run(source, options);
    const auto bytes = static_cast<std::size_t>(max_tokens) - 1;
    EXPECT_EQ(result.text, " upon" + std::string("\xF0\x9F\x98").substr(0, bytes));
    EXPECT_EQ(parts.size(), 2U);
  }
}

TEST(Generation, TheSpaceInFrontIsDroppedAtTheStartOfAText) {
  ScriptedSource source = source_of({kOnce, kUpon, kEos});
  EXPECT_EQ(run(source, greedy(), kPromptIds, true).result.text, "Once upon");
}

// --- Interruption -------------------------------------------------------------------------------

TEST(Generation, TheCallbackCanEndIt) {
  ScriptedSource source = source_of({kUpon, kDot, kNewline, kUser});
  GenerationOptions options = stopping_at({"\nUser:"});
  Parts parts;
  const auto on_text = [&](std::string_view text) {
    parts.emplace_back(text);
    return parts.size() < 2;
  };
  const auto result = run_generation(source, &tokenizer(), kPromptIds, options, on_text, false);
  EXPECT_EQ(result.reason, FinishReason::interrupted);
  EXPECT_EQ(parts, (Parts{" upon", "."}));
  EXPECT_EQ(result.text, " upon.");
  EXPECT_EQ(result.tokens, (Ids{kUpon, kDot}));
}

TEST(Generation, TheCallbackIsNotCalledAgainAfterItRefused) {
  ScriptedSource source = source_of({kUser, kF0, k9F});
  GenerationOptions options = stopping_at({"er:"});
  int calls = 0;
  const auto refuse = [&](std::string_view) { return ++calls == 0; };
  const auto result = run_generation(source, &tokenizer(), kPromptIds, options, refuse, false);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(result.text, "Us") << "\"er\" was held back and stays unsaid";
  EXPECT_EQ(result.reason, FinishReason::interrupted);
}

TEST(Generation, CancellingGivesWhatThereIs) {
  ScriptedSource source = source_of({kUpon, kNewline, kUser, kColon});
  source.on_evaluate = [](std::size_t length) {
    if (length == 5) throw Interrupted();
  };
  const auto [result, parts] = run(source, stopping_at({"\nUser:"}));
  EXPECT_EQ(result.reason, FinishReason::interrupted);
  EXPECT_EQ(result.tokens, (Ids{kUpon, kNewline, kUser}));
  EXPECT_EQ(result.text, " upon\nUser") << "what was held back is text after all";
  EXPECT_EQ(held(source), (Ids{kBos, kOnce, kUpon, kNewline}));
  EXPECT_GE(result.generate_seconds, 0.0);
}

TEST(Generation, CancellingInThePromptGivesNothing) {
  ScriptedSource source = source_of({kUpon});
  source.on_evaluate = [](std::size_t) { throw Interrupted(); };
  const auto [result, parts] = run(source);
  EXPECT_EQ(result.reason, FinishReason::interrupted);
  EXPECT_EQ(result.tokens, Ids{});
  EXPECT_EQ(held(source), Ids{});
  EXPECT_EQ(result.generate_seconds, 0.0);
}

// --- Going on -----------------------------------------------------------------------------------

TEST(Generation, AnEmptyPromptGoesOnFromWhatIsHeld) {
  ScriptedSource source = source_of({kUpon, kDot, kEos});
  source.evaluate(kPromptIds);
  EXPECT_EQ(run(source, greedy(), {}).result.text, " upon.");
  EXPECT_EQ(held(source), (Ids{kBos, kOnce, kUpon, kDot}));
}

TEST(Generation, WithNothingHeldAnEmptyPromptIsAUsageError) {
  ScriptedSource source = source_of({kUpon});
  EXPECT_THROW(run(source, greedy(), {}), UsageError);
}

TEST(Generation, CutInTwoItGivesTheSameTokens) {
  GenerationOptions options;
  options.sampling.temperature = 1.0F;
  options.sampling.seed = 3;
  options.sampling.repetition_penalty = 1.3F;
  options.ignore_eos = true;
  options.max_tokens = 20;
  ScriptedSource whole = source_of({kUpon});
  whole.wish = 1.0F;
  const Ids expected = run(whole, options).result.tokens;

  ScriptedSource cut = source_of({kUpon});
  cut.wish = 1.0F;
  options.max_tokens = 8;
  Ids tokens = run(cut, options).result.tokens;
  options.max_tokens = 12;
  const Ids rest = run(cut, options, Ids{tokens.back()}).result.tokens;
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  EXPECT_EQ(tokens, expected);
}

// --- The rest -----------------------------------------------------------------------------------

TEST(Generation, ThePenaltyLooksAtThePromptAndTheGeneratedTokens) {
  ScriptedSource source = source_of({kOnce});  // wants forever what the prompt has
  source.wish = 0.5F;
  GenerationOptions options = greedy();
  options.max_tokens = 3;
  options.ignore_eos = true;
  options.sampling.presence_penalty = 1.0F;
  EXPECT_EQ(run(source, options).result.tokens, (Ids{kUpon, kDot, kNewline}))
      << "no token of the prompt, and no other twice";
}

TEST(Generation, LogprobsAreTheModelsOwn) {
  ScriptedSource source = source_of({kUpon, kDot, kEos});
  GenerationOptions options = greedy();
  options.logprobs = 2;
  options.sampling.logit_bias = {{kUpon, -5.0F}};  // has no part in them
  const auto [result, parts] = run(source, options);
  ASSERT_EQ(result.logprobs.size(), 2U) << "none for EOS";
  const double expected = 10.0 - std::log(std::exp(10.0) + 11.0);
  EXPECT_EQ(result.logprobs[0].token, kUpon);
  EXPECT_NEAR(result.logprobs[0].logprob, expected, 1e-12);
  ASSERT_EQ(result.logprobs[0].top.size(), 2U);
  EXPECT_EQ(result.logprobs[0].top[0].first, kUpon);
  EXPECT_EQ(result.logprobs[0].top[1].first, kBos) << "ties to the lower id";

  options.logprobs = 0;
  source.rewind(0);
  EXPECT_TRUE(run(source, options).result.logprobs[0].top.empty());
  options.logprobs = -1;
  source.rewind(0);
  EXPECT_TRUE(run(source, options).result.logprobs.empty());
}

TEST(Generation, WithoutATokenizerThereAreOnlyIds) {
  ScriptedSource source = source_of({kUpon, kF0, kEos});
  GenerationOptions options = greedy();
  const auto no_text = [](std::string_view) -> bool { throw Error("called"); };
  const auto result = run_generation(source, nullptr, kPromptIds, options, no_text, false);
  EXPECT_EQ(result.tokens, (Ids{kUpon, kF0}));
  EXPECT_EQ(result.text, "");
  options.stop = {"."};
  EXPECT_THROW(run_generation(source, nullptr, kPromptIds, options, {}, false), UsageError);
}

TEST(Generation, TheCallbackMayBeLeftOut) {
  ScriptedSource source = source_of({kUpon, kEos});
  EXPECT_EQ(run_generation(source, &tokenizer(), kPromptIds, greedy(), {}, false).text, " upon");
}

TEST(Generation, OptionsOutOfRangeAreUsageErrors) {
  ScriptedSource source = source_of({kUpon});
  const auto refused = [&](auto change) {
    GenerationOptions options = greedy();
    change(options);
    EXPECT_THROW(run(source, options), UsageError);
  };
  refused([](GenerationOptions& o) { o.max_tokens = -2; });
  refused([](GenerationOptions& o) { o.logprobs = -2; });
  refused([](GenerationOptions& o) { o.logprobs = 13; });
  refused([](GenerationOptions& o) { o.sampling.top_p = 2.0F; });
  EXPECT_EQ(source.passes, 0) << "before the prompt is evaluated";
}

TEST(Generation, FinishReasonsHaveNames) {
  EXPECT_STREQ(to_string(FinishReason::stop), "stop");
  EXPECT_STREQ(to_string(FinishReason::length), "length");
  EXPECT_STREQ(to_string(FinishReason::context), "context");
  EXPECT_STREQ(to_string(FinishReason::interrupted), "interrupted");
}

}  // namespace
}  // namespace openelm
