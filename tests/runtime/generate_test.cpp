#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/engine.h>
#include <openelm/error.h>
#include <openelm/generation.h>

// generate() on the bundled model; the rules of the loop are tested on a scripted one.

namespace openelm {
namespace {

using Ids = std::vector<TokenId>;

class Generate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    EngineOptions options;
    options.threads = 1;
    engine_ = Engine::load(OPENELM_MODELS "/openelm-tiny", options);
  }
  static void TearDownTestSuite() { engine_.reset(); }

  static Session session(std::int32_t context = 0) {
    SessionOptions options;
    options.context = context;
    return Session(engine_, options);
  }

  static GenerationOptions sampled(std::int32_t max_tokens) {
    GenerationOptions options;
    options.max_tokens = max_tokens;
    options.ignore_eos = true;
    options.sampling.seed = 1;
    return options;
  }

  static Ids held(const Session& session) {
    return {session.tokens().begin(), session.tokens().end()};
  }

  static inline std::shared_ptr<const Engine> engine_;
  const Ids prompt_ = {1, 445, 293, 283};
};

TEST_F(Generate, TheSessionHoldsAllButTheLastToken) {
  Session session = Generate::session();
  const GenerationResult result = generate(session, nullptr, prompt_, sampled(8));
  EXPECT_EQ(result.reason, FinishReason::length);
  ASSERT_EQ(result.tokens.size(), 8U);
  Ids expected = prompt_;
  expected.insert(expected.end(), result.tokens.begin(), result.tokens.end() - 1);
  EXPECT_EQ(held(session), expected);
  EXPECT_GT(result.prompt_seconds, 0.0);
  EXPECT_GT(result.generate_seconds, 0.0);
}

TEST_F(Generate, TheSameSeedGivesTheSameTokensAndAnotherOneOthers) {
  Session a = session();
  Session b = session();
  Session c = session();
  GenerationOptions options = sampled(24);
  const Ids tokens = generate(a, nullptr, prompt_, options).tokens;
  EXPECT_EQ(generate(b, nullptr, prompt_, options).tokens, tokens);
  options.sampling.seed = 2;
  EXPECT_NE(generate(c, nullptr, prompt_, options).tokens, tokens);
}

TEST_F(Generate, AnEmptyPromptGoesOnFromTheSession) {
  Session whole = session();
  const Ids expected = generate(whole, nullptr, prompt_, sampled(8)).tokens;
  Session begun = session();
  begun.evaluate(prompt_);
  EXPECT_EQ(generate(begun, nullptr, {}, sampled(8)).tokens, expected);
  Session empty = session();
  EXPECT_THROW(generate(empty, nullptr, {}, sampled(8)), UsageError);
}

TEST_F(Generate, ThePromptMayFillTheContextButNotExceedIt) {
  const auto reason_and_count = [&](std::int32_t context) {
    Session session = Generate::session(context);
    const GenerationResult result = generate(session, nullptr, prompt_, sampled(-1));
    return std::pair(result.reason, result.tokens.size());
  };
  EXPECT_EQ(reason_and_count(6), std::pair(FinishReason::context, std::size_t{2}));
  EXPECT_EQ(reason_and_count(5), std::pair(FinishReason::context, std::size_t{1}));
  EXPECT_EQ(reason_and_count(4), std::pair(FinishReason::context, std::size_t{0}));
  try {
    reason_and_count(3);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find('4'), std::string::npos) << message;
    EXPECT_NE(message.find('3'), std::string::npos) << message;
  }
}

TEST_F(Generate, TheCancelFlagInterrupts) {
  Session session = Generate::session();
  std::atomic<bool> cancel{true};
  session.set_cancel(&cancel);
  const GenerationResult result = generate(session, nullptr, prompt_, sampled(8));
  EXPECT_EQ(result.reason, FinishReason::interrupted);
  EXPECT_EQ(result.tokens, Ids{});
  EXPECT_EQ(session.length(), 0);
  cancel = false;
  EXPECT_EQ(generate(session, nullptr, prompt_, sampled(8)).tokens.size(), 8U);
}

}  // namespace
}  // namespace openelm
