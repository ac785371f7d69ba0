// Perplexities of the float64 reference implementation, on small checkpoints with random weights,
// for every vectorised kernel variant that this CPU runs.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <openelm/evaluation.h>

#include "support/variants.h"

namespace openelm {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double kRelative = 1e-5;  // a tenth of what a float32 engine is allowed

const fs::path kData = OPENELM_TEST_DATA;

/// The scalar kernels give the same bits (see known_bits_test), and take minutes for it.
std::vector<std::string> vector_variants() {
  std::vector<std::string> variants = test::runnable_variants();
  if (variants.size() > 1) std::erase(variants, "scalar");
  return variants;
}

class GoldenPerplexity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [isa, name] = GetParam();
    std::ifstream in(kData / "golden" / (name + ".json"));
    golden_ = json::parse(in)["perplexity"];
    tokens_ = golden_["tokens"].get<std::vector<TokenId>>();
    engine_ = Engine::load(kData / "ckpt" / name, {.threads = 2, .isa = isa});
  }

  void expect(const std::string& key, std::span<const TokenId> tokens,
              const WindowOptions& options) const {
    PerplexityEvaluator evaluator(engine_, nullptr, options);
    const TextScore score = evaluator.evaluate(tokens);
    const double nll = golden_[key]["nll"].get<double>();
    const double ppl = golden_[key]["ppl"].get<double>();
    EXPECT_EQ(score.scored, golden_[key]["scored"].get<std::int64_t>()) << key;
    EXPECT_NEAR(score.nll, nll, 2e-3) << key;
    ASSERT_TRUE(score.perplexity());
    EXPECT_NEAR(*score.perplexity() / ppl, 1.0, kRelative) << key;
  }

  json golden_;
  std::vector<TokenId> tokens_;
  std::shared_ptr<const Engine> engine_;
};

// The golden lists hold BOS themselves, so to the evaluator they are texts without one.
TEST_P(GoldenPerplexity, Windows) {
  const auto plain = [](std::int32_t context, std::int32_t stride) {
    return WindowOptions{.context = context, .stride = stride, .bos = BosRule::none};
  };
  expect("context128_stride64", tokens_, plain(128, 64));
  expect("context128_stride128", tokens_, plain(128, 128));
  if (golden_.contains("context700_stride700")) {
    expect("context700_stride700", tokens_, plain(700, 700));
  }
  // Hundreds of windows: once is enough.
  const bool many = golden_.contains("context128_stride1_first150");
  if (many && std::get<0>(GetParam()) == vector_variants().back()) {
    expect("context128_stride1_first150", std::span(tokens_).first(150), plain(128, 1));
  }
}

TEST_P(GoldenPerplexity, BosFirstIsBosInTheList) {
  ASSERT_EQ(tokens_.front(), engine_->config().bos_id);
  expect("context128_stride64", std::span(tokens_).subspan(1),
         {.context = 128, .stride = 64, .bos = BosRule::first});
}

TEST_P(GoldenPerplexity, RollingWindowsOfTheHarness) {
  expect("lm_eval_rolling_bos_max128", std::span(tokens_).subspan(1),
         {.rule = ScoringRule::lm_eval, .context = 128});
}

INSTANTIATE_TEST_SUITE_P(Variants, GoldenPerplexity,
                         testing::Combine(testing::ValuesIn(vector_variants()),
                                          testing::Values("tiny-gqa4", "tiny-mha", "tiny-mqa",
                                                          "tiny-text")),
                         test::variant_and_checkpoint);

}  // namespace
}  // namespace openelm
