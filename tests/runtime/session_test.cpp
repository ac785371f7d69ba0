#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <openelm/engine.h>
#include <openelm/error.h>
#include <openelm/session.h>

#include "support/float_bits.h"

namespace openelm {
namespace {

using Logits = std::vector<float>;

std::shared_ptr<const Engine> tiny() {
  static const auto engine =
      Engine::load(std::filesystem::path(OPENELM_TEST_DATA) / "ckpt" / "tiny-gqa4", {.threads = 2});
  return engine;
}

Logits copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

std::vector<TokenId> ids(std::size_t n) {
  std::vector<TokenId> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<TokenId>(i * 37 % 300);
  return tokens;
}

/// The message of the Error that `call` throws.
template <typename Call>
std::string message(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(Session, HoldsWhatWasEvaluated) {
  Session session(tiny());
  EXPECT_EQ(session.length(), 0);
  EXPECT_EQ(session.context(), 2048);
  const auto tokens = ids(5);
  EXPECT_EQ(session.evaluate(tokens).size(), 311U);
  ASSERT_EQ(session.length(), 5);
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), session.tokens().begin()));
}

TEST(Session, RowsAreCalledInOrderAndLastEqualsTheResult) {
  const auto tokens = ids(300);
  Session whole(tiny(), {.chunk = 512});
  const Logits last = copy(whole.evaluate(tokens));
  Session rows(tiny(), {.chunk = 50});
  std::vector<std::size_t> seen;
  Logits row;
  std::vector<std::int32_t> wanted = {0, 49, 50, 120, 299};
  rows.evaluate(tokens, wanted, [&](std::size_t i, std::span<const float> logits) {
    seen.push_back(i);
    row = copy(logits);
  });
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 49, 50, 120, 299}));
  EXPECT_TRUE(test::same_bits(row, last));
}

TEST(Session, EveryRowOfALongPrompt) {
  const auto tokens = ids(300);
  std::vector<std::int32_t> wanted(tokens.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<std::int32_t>(i);
  Session session(tiny());
  std::size_t count = 0;
  session.evaluate(tokens, wanted, [&](std::size_t i, auto) { EXPECT_EQ(i, count++); });
  EXPECT_EQ(count, tokens.size());
}

TEST(Session, RewindsExactly) {
  const auto tokens = ids(60);
  Session fresh(tiny());
  const Logits expected = copy(fresh.evaluate(tokens));
  Session session(tiny());
  session.evaluate(std::span(tokens).first(40));
  session.evaluate(ids(15));
  session.rewind(40);
  EXPECT_EQ(session.length(), 40);
  EXPECT_TRUE(test::same_bits(copy(session.evaluate(std::span(tokens).subspan(40))), expected));
  EXPECT_THROW(session.rewind(61), UsageError);
  EXPECT_THROW(session.rewind(-1), UsageError);
}

TEST(Session, ContextIsFilledToTheLastPosition) {
  Session session(tiny(), {.context = 64});
  session.evaluate(ids(64));
  const std::string full = message([&] { session.evaluate(ids(1)); });
  EXPECT_NE(full.find("65 tokens"), std::string::npos) << full;
  EXPECT_NE(full.find("context of 64"), std::string::npos) << full;
  EXPECT_EQ(session.length(), 64);  // nothing was lost
}

TEST(Session, RefusesAPromptThatIsTooLong) {
  Session session(tiny(), {.context = 64});
  const std::string text = message([&] { session.evaluate(ids(65)); });
  EXPECT_NE(text.find("65 tokens do not fit the context of 64"), std::string::npos) << text;
  EXPECT_EQ(session.length(), 0);
}

TEST(Session, RefusesIdsOutsideTheVocabulary) {
  Session session(tiny());
  for (const TokenId bad : {-1, 311, 2147483647}) {
    const std::vector<TokenId> tokens = {1, bad};
    const std::string text = message([&] { session.evaluate(tokens); });
    EXPECT_NE(text.find("token 1: id " + std::to_string(bad)), std::string::npos) << text;
    EXPECT_NE(text.find("vocabulary of 311"), std::string::npos) << text;
  }
  EXPECT_THROW(session.evaluate({}), UsageError);
}

TEST(Session, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Session(tiny(), {.context = 2049}), UsageError);
  EXPECT_THROW(Session(tiny(), {.context = -1}), UsageError);
  EXPECT_THROW(Session(tiny(), {.chunk = 0}), UsageError);
}

TEST(Session, CancelledPassLeavesWhatWasHeld) {
  const auto tokens = ids(200);
  Session session(tiny());
  session.evaluate(std::span(tokens).first(20));
  std::atomic<bool> cancel{true};
  session.set_cancel(&cancel);
  EXPECT_THROW(session.evaluate(std::span(tokens).subspan(20)), Interrupted);
  EXPECT_EQ(session.length(), 20);
  cancel = false;
  const Logits after = copy(session.evaluate(std::span(tokens).subspan(20)));
  Session fresh(tiny());
  EXPECT_TRUE(test::same_bits(after, copy(fresh.evaluate(tokens))));
}

TEST(Session, NarrowCachesComeCloseToFloat32) {
  const auto tokens = ids(300);
  Session exact(tiny(), {.kv_type = KvType::f32});
  const Logits expected = copy(exact.evaluate(tokens));
  for (const auto& [type, tolerance] :
       {std::pair{KvType::f16, 0.05F}, {KvType::bf16, 0.5F}, {KvType::q8, 1.0F}}) {
    Session session(tiny(), {.kv_type = type});
    const auto logits = session.evaluate(tokens);
    float worst = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      worst = std::max(worst, std::abs(logits[i] - expected[i]));
    }
    EXPECT_LT(worst, tolerance) << to_string(type);
    EXPECT_GT(worst, 0.0F) << to_string(type);  // it really is another type
    EXPECT_LT(session.kv_bytes(), exact.kv_bytes());
  }
}

TEST(Session, StopsAtWeightsThatAreNotFinite) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("openelm-nan-" + std::to_string(::getpid()));
  fs::remove_all(folder);
  fs::copy(fs::path(OPENELM_TEST_DATA) / "ckpt" / "tiny-mha", folder);
  {
    std::fstream file(folder / "model.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    file.seekp(-static_cast<std::streamoff>(sizeof(nan)), std::ios::end);
    file.write(reinterpret_cast<const char*>(&nan), sizeof(nan));
    ASSERT_TRUE(file.good());
  }
  const auto engine = Engine::load(folder, {.threads = 1});
  fs::remove_all(folder);
  Session session(engine);
  const std::vector<TokenId> tokens = {1, 2, 3};
  const std::string text = message([&] { session.evaluate(tokens); });
  EXPECT_NE(text.find("not finite at position"), std::string::npos) << text;
  EXPECT_EQ(session.length(), 0);
}

TEST(Engine, TellsWhatItLoaded) {
  const auto engine = tiny();
  EXPECT_EQ(engine->threads(), 2);
  EXPECT_EQ(engine->weight_format(), WeightFormat{WeightType::bf16});
  EXPECT_EQ(engine->config().layers.size(), 4U);
  EXPECT_GT(engine->weight_bytes(),
            2U * static_cast<std::uint64_t>(engine->config().parameter_count()) * 9 / 10);
}

TEST(Engine, ReportsProgressUpToTheEnd) {
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  Engine::load(std::filesystem::path(OPENELM_TEST_DATA) / "ckpt" / "tiny-mha",
               {.threads = 1, .progress = [&](std::uint64_t done, std::uint64_t all) {
                  EXPECT_GT(done, last);
                  last = done;
                  total = all;
                }});
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0U);
}

TEST(Engine, RefusesImpossibleOptions) {
  const auto folder = std::filesystem::path(OPENELM_TEST_DATA) / "ckpt" / "tiny-mha";
  EXPECT_THROW(Engine::load(folder, {.threads = -1}), UsageError);
  EXPECT_THROW(Engine::load(folder, {.threads = 5000}), UsageError);
  EXPECT_THROW(Engine::load(folder, {.isa = "sse9"}), UsageError);
  EXPECT_THROW(Engine::load("no/such/folder"), Error);
}

TEST(Engine, SixteenBitCacheKeepsTheRangeThatLargeModelsNeed) {
  ModelConfig config;
  config.vocab_size = 32000;
  config.model_dim = 3072;
  config.head_dim = 128;
  config.layers.assign(36, {24, 6, 8192});
  EXPECT_EQ(default_kv_type(config), KvType::bf16);
  EXPECT_EQ(default_kv_type(tiny()->config()), KvType::f16);
}

}  // namespace
}  // namespace openelm
