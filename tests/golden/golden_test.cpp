// Numbers of the float64 reference implementation, on small checkpoints with random weights, for
// every kernel variant that this CPU runs. The tolerances are those of a float32 engine whose
// weights are converted exactly (the reference in float32 stays within a quarter of them).

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <openelm/engine.h>
#include <openelm/sampling.h>
#include <openelm/session.h>

#include "support/variants.h"

namespace openelm {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double kLogitTolerance = 2e-3;
constexpr double kLogProbTolerance = 5e-4;
constexpr double kSumTolerance = 2e-3;

const fs::path kData = OPENELM_TEST_DATA;

json read_json(const fs::path& file) {
  std::ifstream in(file);
  return json::parse(in);
}

/// Longest token list to evaluate: all, unless kernels are slow here (scalar ones, emulators).
std::size_t max_tokens(const std::string& isa) {
  if (const char* limit = std::getenv("OPENELM_GOLDEN_MAX_TOKENS")) return std::stoul(limit);
  return isa == "scalar" ? 700 : 2048;
}

class Golden : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [isa, name] = GetParam();
    golden_ = read_json(kData / "golden" / (name + ".json"));
    engine_ = Engine::load(kData / "ckpt" / name, {.threads = 2, .isa = isa});
    ASSERT_STREQ(engine_->isa(), isa.c_str());
  }

  /// Logits after each of `positions`.
  std::vector<std::vector<float>> logits_at(const std::vector<TokenId>& tokens,
                                            const std::vector<std::int32_t>& positions) {
    Session session(engine_, {.chunk = 64});
    std::vector<std::vector<float>> rows;
    session.evaluate(tokens, positions, [&](std::size_t, std::span<const float> logits) {
      rows.emplace_back(logits.begin(), logits.end());
    });
    return rows;
  }

  /// log p(tokens[i] | tokens before it) for i >= first.
  std::vector<double> log_probabilities(const std::vector<TokenId>& tokens, std::size_t first) {
    Session session(engine_);
    std::vector<std::int32_t> wanted;
    for (std::size_t i = first - 1; i + 1 < tokens.size(); ++i) {
      wanted.push_back(static_cast<std::int32_t>(i));
    }
    std::vector<double> result;
    session.evaluate(tokens, wanted, [&](std::size_t i, std::span<const float> logits) {
      if (i + 1 < tokens.size()) result.push_back(log_probability(logits, tokens[i + 1]));
    });
    return result;
  }

  json golden_;
  std::shared_ptr<const Engine> engine_;
};

TEST_P(Golden, LayerSizes) {
  const json& dims = golden_["dims"];
  const auto& layers = engine_->config().layers;
  ASSERT_EQ(layers.size(), dims["query_heads"].size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    EXPECT_EQ(layers[l].n_heads, dims["query_heads"][l]);
    EXPECT_EQ(layers[l].n_kv_heads, dims["kv_heads"][l]);
    EXPECT_EQ(layers[l].ffn_dim, dims["ffn_dims"][l]);
  }
}

TEST_P(Golden, Logits) {
  std::size_t checked = 0;
  for (const json& entry : golden_["logits"]) {
    const auto tokens = entry["tokens"].get<std::vector<TokenId>>();
    if (tokens.size() > max_tokens(std::get<0>(GetParam()))) continue;
    const auto positions = entry["positions"].get<std::vector<std::int32_t>>();
    const auto rows = logits_at(tokens, positions);
    ASSERT_EQ(rows.size(), positions.size());
    for (std::size_t p = 0; p < rows.size(); ++p) {
      const json& expected = entry["logits"][p];
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::size_t id = entry.contains("ids") ? entry["ids"][i].get<std::size_t>() : i;
        ASSERT_NEAR(rows[p][id], expected[i].get<double>(), kLogitTolerance)
            << tokens.size() << " tokens, position " << positions[p] << ", id " << id;
        ++checked;
      }
      if (!entry.contains("top")) continue;
      const json& top = entry["top"][p];
      for (std::size_t i = 0; i < top["ids"].size(); ++i) {
        ASSERT_NEAR(rows[p][top["ids"][i].get<std::size_t>()], top["logits"][i].get<double>(),
                    kLogitTolerance);
      }
      const double log_sum = rows[p][0] - log_probability(rows[p], 0);
      EXPECT_NEAR(log_sum, entry["logsumexp"][p].get<double>(), kLogitTolerance);
    }
  }
  EXPECT_GT(checked, 100U);
}

TEST_P(Golden, GreedyContinuation) {
  for (const json& entry : golden_["greedy"]) {
    const auto expected = entry["continuation"].get<std::vector<TokenId>>();
    Session session(engine_);
    Sampler greedy({.temperature = 0}, engine_->config().vocab_size);
    std::vector<TokenId> next = entry["prompt"].get<std::vector<TokenId>>();
    std::vector<TokenId> generated;
    while (generated.size() < expected.size()) {
      generated.push_back(greedy.sample(session.evaluate(next), session.tokens()));
      next = {generated.back()};
    }
    EXPECT_EQ(generated, expected);
  }
}

TEST_P(Golden, LogLikelihoods) {
  for (const json& entry : golden_["loglik"]) {
    const auto tokens = entry["tokens"].get<std::vector<TokenId>>();
    const auto each = log_probabilities(tokens, 1);
    ASSERT_EQ(each.size(), entry["per_token"].size());
    double sum = 0;
    for (std::size_t i = 0; i < each.size(); ++i) {
      EXPECT_NEAR(each[i], entry["per_token"][i].get<double>(), kLogProbTolerance);
      sum += each[i];
    }
    EXPECT_NEAR(sum, entry["sum"].get<double>(), kSumTolerance);
  }
}

TEST_P(Golden, MultipleChoiceSums) {
  const auto& [isa, name] = GetParam();
  const json task = read_json(kData / "golden" / "multiple_choice.json");
  if (task["checkpoint"] != "ckpt/" + name) GTEST_SKIP() << "made with another checkpoint";
  for (const json& item : task["items"]) {
    const auto context = item["context_tokens"].get<std::vector<TokenId>>();
    for (const json& choice : item["choices"]) {
      std::vector<TokenId> tokens = context;
      for (const json& id : choice["continuation_tokens"]) tokens.push_back(id);
      double sum = 0;
      for (const double p : log_probabilities(tokens, context.size())) sum += p;
      EXPECT_NEAR(sum, choice["logprob_sum"].get<double>(), kSumTolerance);
    }
  }
}

TEST_P(Golden, SampledSequences) {
  const auto& [isa, name] = GetParam();
  std::size_t checked = 0;
  const json golden = read_json(kData / "golden" / "sampling.json");
  for (const json& entry : golden["cases"]) {
    if (entry["checkpoint"] != "ckpt/" + name) continue;
    Sampler sampler({.temperature = entry["temperature"].get<float>(),
                     .top_k = entry["top_k"].get<std::int32_t>(),
                     .top_p = entry["top_p"].get<float>()},
                    engine_->config().vocab_size);
    Session session(engine_);
    std::vector<TokenId> next = entry["prompt"].get<std::vector<TokenId>>();
    std::vector<TokenId> sequence;
    for (const json& u : entry["uniforms"]) {
      const auto logits = session.evaluate(next);
      const auto distribution = sampler.distribution(logits, session.tokens());
      if (sequence.empty()) {
        EXPECT_EQ(distribution.size(), entry["first_step_kept"].get<std::size_t>());
        for (std::size_t i = 0; i < entry["first_step_ids"].size(); ++i) {
          EXPECT_EQ(distribution[i].id, entry["first_step_ids"][i].get<TokenId>());
          EXPECT_NEAR(distribution[i].probability, entry["first_step_probs"][i].get<double>(),
                      1e-4);
        }
      }
      sequence.push_back(pick(distribution, u.get<double>()));
      next = {sequence.back()};
    }
    EXPECT_EQ(sequence, entry["sequence"].get<std::vector<TokenId>>());
    ++checked;
  }
  EXPECT_EQ(checked, name == "tiny-text" ? 0U : 5U);
}

/// The full-size model whose weights a generator makes from a seed; 543 MB, so it is not kept here.
TEST(GoldenFullSize, LogitsOf270M) {
  const char* const folder = std::getenv("OPENELM_EXACT_270M");
  if (folder == nullptr) GTEST_SKIP() << "OPENELM_EXACT_270M names no checkpoint";
  const json golden = read_json(kData / "golden" / "exact-270M-seed7.json");
  const auto engine = Engine::load(folder);
  EXPECT_EQ(engine->config().parameter_count(), 271527168);
  for (const json& top : golden["top"]) {
    auto tokens = golden["tokens"].get<std::vector<TokenId>>();
    tokens.resize(top["position"].get<std::size_t>() + 1);
    Session session(engine);
    const auto logits = session.evaluate(tokens);
    for (std::size_t i = 0; i < top["ids"].size(); ++i) {
      EXPECT_NEAR(logits[top["ids"][i].get<std::size_t>()], top["logits_f64"][i].get<double>(),
                  kLogitTolerance);
    }
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_NEAR(logits[i], top["first8"][i].get<double>(), kLogitTolerance);
      EXPECT_NEAR(logits[logits.size() - 8 + i], top["last8"][i].get<double>(), kLogitTolerance);
    }
    const double log_sum = logits[0] - log_probability(logits, 0);
    EXPECT_NEAR(log_sum, top["logsumexp"].get<double>(), kLogitTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Golden,
                         testing::Combine(testing::ValuesIn(test::runnable_variants()),
                                          testing::Values("tiny-gqa4", "tiny-mha", "tiny-mqa",
                                                          "tiny-text")),
                         test::variant_and_checkpoint);

}  // namespace
}  // namespace openelm
