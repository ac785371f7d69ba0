#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/sampling.h>

#include "runtime/rng.h"

namespace openelm {
namespace {

using Logits = std::vector<float>;
using Ids = std::vector<TokenId>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Ids ids_of(const std::vector<TokenProbability>& distribution) {
  Ids ids;
  for (const auto& [id, probability] : distribution) ids.push_back(id);
  return ids;
}

/// The rule, written as plainly as it can be.
std::vector<TokenProbability> by_the_rule(const SamplingOptions& o, Logits logits,
                                          const Ids& history, const Ids& forbidden) {
  const std::size_t all = history.size();
  const std::size_t window =
      o.repetition_window < 0 ? all : std::min(all, static_cast<std::size_t>(o.repetition_window));
  std::map<TokenId, int> counts;
  for (std::size_t i = all - window; i < all; ++i) ++counts[history[i]];
  for (const auto& [id, count] : counts) {
    float& logit = logits[static_cast<std::size_t>(id)];
    double x = logit;
    x = x > 0 ? x / double{o.repetition_penalty} : x * double{o.repetition_penalty};
    logit =
        static_cast<float>(x - count * double{o.frequency_penalty} - double{o.presence_penalty});
  }
  for (const auto& [id, bias] : o.logit_bias) logits[static_cast<std::size_t>(id)] += bias;
  for (const TokenId id : forbidden) logits[static_cast<std::size_t>(id)] = -kInfinity;

  struct Candidate {
    TokenId id;
    float logit;
    double weight;
  };
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInfinity) candidates.push_back({static_cast<TokenId>(i), logits[i], 0});
  }
  const auto sort = [&] {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  };
  std::size_t kept = o.temperature == 0.0F ? 1 : static_cast<std::size_t>(o.top_k);
  if (kept > 0) {  // the sum of weights runs best first with top-k, else by id
    sort();
    candidates.resize(std::min(kept, candidates.size()));
  }
  const double temperature = o.temperature == 0.0F ? 1.0 : double{o.temperature};
  float best = -kInfinity;
  for (const Candidate& c : candidates) best = std::max(best, c.logit);
  double total = 0;
  for (Candidate& c : candidates) {
    total += c.weight = std::exp((double{c.logit} - double{best}) / temperature);
  }
  sort();

  if (o.top_p < 1.0F || o.min_p > 0.0F) {
    double mass = 0;
    for (kept = 0; kept < candidates.size(); ++kept) {
      if (kept > 0 && o.top_p < 1.0F && mass / total >= double{o.top_p}) break;
      if (kept > 0 && candidates[kept].weight < double{o.min_p}) break;
      mass += candidates[kept].weight;
    }
    candidates.resize(kept);
    total = mass;
  }
  std::vector<TokenProbability> result;
  for (const Candidate& c : candidates) result.push_back({c.id, c.weight / total});
  return result;
}

/// Distribution and draws are those of the rule, to the bit.
void expect_the_rule(const SamplingOptions& options, const Logits& logits, const Ids& history = {},
                     const Ids& forbidden = {}) {
  const auto expected = by_the_rule(options, logits, history, forbidden);
  ASSERT_FALSE(expected.empty());
  Sampler sampler(options, static_cast<std::int32_t>(logits.size()));
  const auto got = sampler.distribution(logits, history, forbidden);
  ASSERT_EQ(ids_of(got), ids_of(expected));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].probability, expected[i].probability) << i;
  }
  for (std::uint64_t step = 0; step < 4; ++step) {
    ASSERT_EQ(sampler.sample(logits, history, forbidden),
              pick(expected, uniform(options.seed, step)));
  }
}

TEST(Sampler, TheFastPathIsTheRuleExactly) {
  std::mt19937 rng(1);
  const auto number = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(rng);
  };
  const auto real = [&](double from, double to) {
    return static_cast<float>(std::uniform_real_distribution<double>(from, to)(rng));
  };
  const auto maybe = [&](float off, double from, double to) {
    return number(0, 1) == 0 ? off : real(from, to);
  };
  for (int round = 0; round < 3000; ++round) {
    const int vocab = number(0, 9) == 0 ? number(1, 4) : number(5, 1500);
    SamplingOptions options;
    options.temperature = number(0, 9) == 0 ? 0.0F : real(0.05, 3);
    options.top_k = number(0, 1) == 0 ? 0 : number(1, vocab + 5);
    options.top_p = maybe(1.0F, 0, 1);
    options.min_p = maybe(0.0F, 0, 1);
    options.repetition_penalty = maybe(1.0F, 0.5, 2);
    options.repetition_window = number(-1, 30);
    options.frequency_penalty = maybe(0.0F, -1, 1);
    options.presence_penalty = maybe(0.0F, -1, 1);
    options.seed = static_cast<std::uint64_t>(round);
    for (int i = number(0, 3); i > 0; --i) {
      const bool forbid = number(0, 2) == 0;
      options.logit_bias.emplace_back(number(0, vocab - 1), forbid ? -kInfinity : real(-5, 5));
    }
    const float grid =
        std::vector<float>{0.0F, 1.0F, 4.0F, 64.0F}[static_cast<std::size_t>(number(0, 3))];
    Logits logits(static_cast<std::size_t>(vocab));
    for (float& logit : logits) {  // on a grid there are many ties
      logit = real(-8, 8);
      if (grid > 0) logit = std::round(logit * grid) / grid;
    }
    Ids history(static_cast<std::size_t>(number(0, 40)));
    for (TokenId& id : history) id = number(0, vocab - 1);
    const Ids forbidden = vocab > 4 && number(0, 1) == 0 ? Ids{number(0, vocab - 1)} : Ids{};

    if (by_the_rule(options, logits, history, forbidden).empty()) continue;  // all forbidden
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(expect_the_rule(options, logits, history, forbidden));
  }
}

TEST(Sampler, TheFastPathIsTheRuleForAWholeVocabulary) {
  std::mt19937 rng(2);
  std::normal_distribution<float> normal(0, 2.5F);
  for (const float grid : {0.0F, 2.0F}) {  // on a grid there are many ties
    Logits logits(32000);
    for (float& logit : logits) {
      logit = normal(rng);
      if (grid > 0) logit = std::round(logit * grid) / grid;
    }
    for (std::size_t id = 7; id < logits.size(); id += 11) logits[id] = -kInfinity;
    Logits ascending = logits;
    std::sort(ascending.begin(), ascending.end());
    for (const auto& [temperature, top_k, top_p, min_p] :
         std::vector<std::tuple<float, int, float, float>>{{0.8F, 40, 0.95F, 0.0F},
                                                           {0.0F, 40, 0.95F, 0.0F},
                                                           {0.8F, 0, 1.0F, 0.05F},
                                                           {0.8F, 0, 0.95F, 0.0F},
                                                           {0.8F, 0, 0.95F, 0.01F},
                                                           {0.8F, 0, 1.0F, 0.0F},
                                                           {0.2F, 0, 1.0F, 0.0F},
                                                           {3.0F, 0, 0.999F, 0.0F},
                                                           {0.8F, 1000, 0.95F, 0.0F},
                                                           {0.8F, 32000, 1.0F, 0.0F}}) {
      SCOPED_TRACE(testing::Message()
                   << grid << " " << temperature << " " << top_k << " " << top_p << " " << min_p);
      SamplingOptions options;
      options.temperature = temperature;
      options.top_k = top_k;
      options.top_p = top_p;
      options.min_p = min_p;
      ASSERT_NO_FATAL_FAILURE(expect_the_rule(options, logits));
      ASSERT_NO_FATAL_FAILURE(expect_the_rule(options, ascending));
    }
  }
}

TEST(Sampler, ChoicesWithinTheErrorOfTheEstimatedMassAreTheRulesToo) {
  // With equal logits top-p's last token is decided by the last bit of the sum.
  for (const int vocab : {1, 2, 3, 4, 7, 31, 32, 33, 64, 100, 1000}) {
    const Logits equal(static_cast<std::size_t>(vocab), 3.25F);
    for (int kept = 1; kept <= vocab; kept += 1 + vocab / 20) {
      SCOPED_TRACE(testing::Message() << kept << " of " << vocab);
      SamplingOptions options;
      options.top_k = 0;
      options.top_p = static_cast<float>(kept) / static_cast<float>(vocab);
      ASSERT_NO_FATAL_FAILURE(expect_the_rule(options, equal));
    }
  }
  // At the ends of float32's range no estimate is possible.
  for (const float temperature : {1e-45F, 1e-38F, 1e-7F, 1e30F, 3e38F}) {
    SCOPED_TRACE(temperature);
    SamplingOptions options;
    options.temperature = temperature;
    options.top_k = 0;
    for (options.top_p = 0.25F; options.top_p <= 1.0F; options.top_p += 0.25F) {
      ASSERT_NO_FATAL_FAILURE(expect_the_rule(options, {1.0F, 1.0000001F, -2.0F, 1.0F}));
      ASSERT_NO_FATAL_FAILURE(expect_the_rule(options, {3e38F, -3e38F, 1e-45F, 0.0F, 2.9e38F}));
    }
  }
}

}  // namespace
}  // namespace openelm
