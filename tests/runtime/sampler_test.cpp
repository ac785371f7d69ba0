#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>
#include <openelm/sampling.h>

namespace openelm {
namespace {

using Logits = std::vector<float>;
using Ids = std::vector<TokenId>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplingOptions plain() {
  SamplingOptions options;
  options.temperature = 1.0F;
  options.top_k = 0;
  options.top_p = 1.0F;
  return options;
}

SamplingOptions greedy() {
  SamplingOptions options;
  options.temperature = 0.0F;
  return options;
}

Sampler make(const SamplingOptions& options, const Logits& logits) {
  return Sampler(options, static_cast<std::int32_t>(logits.size()));
}

std::vector<TokenProbability> distribution(const SamplingOptions& options, const Logits& logits,
                                           const Ids& history = {}, const Ids& forbidden = {}) {
  return make(options, logits).distribution(logits, history, forbidden);
}

TokenId sample(const SamplingOptions& options, const Logits& logits, const Ids& history = {},
               const Ids& forbidden = {}) {
  return make(options, logits).sample(logits, history, forbidden);
}

Ids ids_of(const std::vector<TokenProbability>& distribution) {
  Ids ids;
  for (const auto& [id, probability] : distribution) ids.push_back(id);
  return ids;
}

/// The logits behind a distribution, up to a constant: of `id` relative to `reference`.
double logit_of(const std::vector<TokenProbability>& distribution, TokenId id, TokenId reference) {
  std::map<TokenId, double> probability;
  for (const auto& [token, p] : distribution) probability[token] = p;
  return std::log(probability.at(id) / probability.at(reference));
}

// --- Greedy -------------------------------------------------------------------------------------

TEST(Sampler, TemperatureZeroTakesTheBestAndTiesGoToTheLowestId) {
  EXPECT_EQ(sample(greedy(), {1, 5, 5, -2}), 1);
  EXPECT_EQ(sample(greedy(), {-3, -1, -2, -1}), 1);
  EXPECT_EQ(sample(greedy(), {0, 0, 0}), 0);
  const auto only = distribution(greedy(), {1, 5, 5, -2});
  ASSERT_EQ(only.size(), 1U);
  EXPECT_EQ(only[0].probability, 1.0);
}

TEST(Sampler, FiltersAndSeedDoNotMatterToGreedyButPenaltiesAndBiasDo) {
  SamplingOptions options = greedy();
  options.top_k = 0;
  options.top_p = 0.0F;
  options.min_p = 1.0F;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    EXPECT_EQ(sample(options, {1, 5, 5, -2}), 1);
  }
  options.presence_penalty = 1.0F;
  EXPECT_EQ(sample(options, {1, 5, 5, -2}, {1}), 2);
  options.logit_bias = {{3, 10.0F}};
  EXPECT_EQ(sample(options, {1, 5, 5, -2}, {1}), 3);
  EXPECT_EQ(sample(options, {1, 5, 5, -2}, {1}, {3}), 2) << "forbidden stands above any bias";
}

TEST(Sampler, TopKOfOneIsGreedy) {
  SamplingOptions options = plain();
  options.top_k = 1;
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    EXPECT_EQ(sample(options, {1, 5, 5, -2}), 1);
  }
}

TEST(Sampler, TheSmallestTemperatureIsGreedyAndTheLargestUniform) {
  SamplingOptions options = plain();
  options.temperature = 1e-30F;
  for (options.seed = 0; options.seed < 50; ++options.seed) {
    EXPECT_EQ(sample(options, {1000, 3e38F, -3e38F}), 1);
    EXPECT_EQ(sample(options, {-5.0F, -4.999999F}), 1);
  }
  options.temperature = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(sample(options, {3e38F, -3e38F}), 0);
  options.temperature = std::numeric_limits<float>::max();
  for (const auto& [id, probability] : distribution(options, {-50, 0, 50, 100})) {
    EXPECT_NEAR(probability, 0.25, 1e-12) << id;
  }
}

// --- Filters ------------------------------------------------------------------------------------

TEST(Sampler, TemperatureDividesTheLogits) {
  SamplingOptions options = plain();
  options.temperature = 0.5F;
  EXPECT_NEAR(logit_of(distribution(options, {1, 2, 4}), 2, 0), 6.0, 1e-12);
}

TEST(Sampler, TopKKeepsTheKBestAndTiesGoToTheLowerId) {
  SamplingOptions options = plain();
  options.top_k = 3;
  EXPECT_EQ(ids_of(distribution(options, {2, 7, 2, 9, 2, 7})), (Ids{3, 1, 5}));
  options.top_k = 4;
  EXPECT_EQ(ids_of(distribution(options, {2, 7, 2, 9, 2, 7})), (Ids{3, 1, 5, 0}));
  options.top_k = 100;
  EXPECT_EQ(ids_of(distribution(options, {2, 7, 2, 9, 2, 7})), (Ids{3, 1, 5, 0, 2, 4}));
  options.top_k = 0;
  EXPECT_EQ(ids_of(distribution(options, {2, 7, 2, 9, 2, 7})), (Ids{3, 1, 5, 0, 2, 4})) << "off";
}

/// Logits whose softmax is 1/2, 1/4, 1/8, 1/8.
const Logits kHalves = {std::log(4.0F), std::log(2.0F), 0.0F, 0.0F};

TEST(Sampler, TopPKeepsTheShortestPrefixThatReachesIt) {
  SamplingOptions options = plain();
  const auto kept = [&](float top_p) {
    options.top_p = top_p;
    return distribution(options, kHalves).size();
  };
  EXPECT_EQ(kept(0.0F), 1U) << "at least one";
  EXPECT_EQ(kept(0.49F), 1U);
  EXPECT_EQ(kept(0.51F), 2U);
  EXPECT_EQ(kept(0.74F), 2U);
  EXPECT_EQ(kept(0.76F), 3U);
  EXPECT_EQ(kept(0.88F), 4U);
  EXPECT_EQ(kept(1.0F), 4U) << "off";
  options.top_p = 0.7F;
  EXPECT_NEAR(distribution(options, kHalves)[0].probability, 2.0 / 3.0, 1e-7) << "renormalised";
}

TEST(Sampler, TopPCountsWithinWhatTopKKept) {
  SamplingOptions options = plain();
  options.top_k = 2;  // 2/3 and 1/3
  options.top_p = 0.6F;
  EXPECT_EQ(ids_of(distribution(options, kHalves)), Ids{0});
}

TEST(Sampler, MinPIsRelativeToTheBest) {
  SamplingOptions options = plain();
  const auto kept = [&](float min_p) {
    options.min_p = min_p;
    return distribution(options, kHalves).size();
  };
  EXPECT_EQ(kept(0.0F), 4U) << "off";
  EXPECT_EQ(kept(0.24F), 4U);
  EXPECT_EQ(kept(0.26F), 2U);
  EXPECT_EQ(kept(0.51F), 1U);
  EXPECT_EQ(kept(1.0F), 1U);
  EXPECT_EQ(distribution(options, {3, 3, 2}).size(), 2U) << "ties of the best stay";
}

// --- Penalties and bias -------------------------------------------------------------------------

TEST(Sampler, TheRepetitionPenaltyDividesPositiveLogitsAndMultipliesNegativeOnes) {
  SamplingOptions options = plain();
  options.repetition_penalty = 2.0F;
  const Logits logits = {2, -2, 0, 0};
  const auto shaped = distribution(options, logits, {0, 1, 2, 0});
  EXPECT_NEAR(logit_of(shaped, 0, 3), 1.0, 1e-12);
  EXPECT_NEAR(logit_of(shaped, 1, 3), -4.0, 1e-12) << "a negative logit goes down, not up";
  EXPECT_NEAR(logit_of(shaped, 2, 3), 0.0, 1e-12);
}

TEST(Sampler, FrequencyCountsEveryOccurrenceAndPresenceOne) {
  SamplingOptions options = plain();
  options.frequency_penalty = 0.5F;
  options.presence_penalty = 0.25F;
  const auto shaped = distribution(options, {1, 1, 1}, {0, 1, 0, 0});
  EXPECT_NEAR(logit_of(shaped, 0, 2), -1.75, 1e-12);
  EXPECT_NEAR(logit_of(shaped, 1, 2), -0.75, 1e-12);
}

TEST(Sampler, TheWindowIsTheLastTokens) {
  SamplingOptions options = plain();
  options.presence_penalty = 1.0F;
  const Ids history = {0, 1, 2};
  const auto penalised = [&](std::int32_t window) {
    options.repetition_window = window;
    Ids ids;
    const auto shaped = distribution(options, {0, 0, 0, 0}, history);
    for (TokenId id = 0; id < 3; ++id) {
      if (logit_of(shaped, id, 3) < -0.5) ids.push_back(id);
    }
    return ids;
  };
  EXPECT_EQ(penalised(0), Ids{}) << "off";
  EXPECT_EQ(penalised(1), Ids{2});
  EXPECT_EQ(penalised(2), (Ids{1, 2}));
  EXPECT_EQ(penalised(3), (Ids{0, 1, 2}));
  EXPECT_EQ(penalised(1000), (Ids{0, 1, 2}));
  EXPECT_EQ(penalised(-1), (Ids{0, 1, 2})) << "all";
}

TEST(Sampler, PenaltiesDoNotAddUpOverCalls) {
  SamplingOptions options = plain();
  options.frequency_penalty = 1.0F;
  const Logits logits = {0, 0};
  Sampler sampler = make(options, logits);
  const Ids history = {0, 0};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(logit_of(sampler.distribution(logits, history), 0, 1), -2.0, 1e-12);
  }
  EXPECT_NEAR(logit_of(sampler.distribution(logits, {}), 0, 1), 0.0, 1e-12);
}

TEST(Sampler, BiasIsAddedAfterThePenalties) {
  SamplingOptions options = plain();
  options.repetition_penalty = 2.0F;
  options.logit_bias = {{0, 3.0F}, {1, -1.5F}, {1, -0.5F}};
  const auto shaped = distribution(options, {2, 2, 0}, {0});
  EXPECT_NEAR(logit_of(shaped, 0, 2), 4.0, 1e-12);
  EXPECT_NEAR(logit_of(shaped, 1, 2), 0.0, 1e-12) << "biases of one token add up";
}

TEST(Sampler, HugePenaltiesAndBiasesStayFinite) {
  SamplingOptions options = greedy();
  options.repetition_penalty = 1e38F;
  EXPECT_EQ(sample(options, {-1e30F, -3e38F}, {0, 1}), 0);
  options.repetition_penalty = 1e-38F;
  EXPECT_EQ(sample(options, {0.0F, 1e30F}, {1}), 1);
  options = greedy();
  options.logit_bias = {{1, 3e38F}, {1, 3e38F}};
  EXPECT_EQ(sample(options, {0.0F, 3e38F}), 1);
}

TEST(Sampler, ForbiddenTokensHaveNoChance) {
  SamplingOptions options = plain();
  options.logit_bias = {{1, -kInfinity}};
  EXPECT_EQ(ids_of(distribution(options, {1, 9, 2, 8}, {}, {3})), (Ids{2, 0}));
  EXPECT_EQ(ids_of(distribution(options, {1, 9, 2, -kInfinity})), (Ids{2, 0}));
  EXPECT_EQ(ids_of(distribution(plain(), {1, 2}, {}, {-1, 2})), (Ids{1, 0}))
      << "what is no token needs no forbidding";
  for (options.seed = 0; options.seed < 100; ++options.seed) {
    EXPECT_NE(sample(options, {0, 99, 0, 99}, {}, {3}) % 2, 1);
  }
}

// --- Faults -------------------------------------------------------------------------------------

TEST(Sampler, ThereMustBeATokenLeft) {
  for (const SamplingOptions& options : {plain(), greedy(), SamplingOptions{}}) {
    EXPECT_THROW(sample(options, {1, 2}, {}, {0, 1}), Error);
    EXPECT_THROW(sample(options, {-kInfinity, -kInfinity}), Error);
  }
}

TEST(Sampler, NanAndInfinityAreErrors) {
  const float nan = std::nanf("");
  for (SamplingOptions options : {plain(), greedy(), SamplingOptions{}}) {
    EXPECT_THROW(sample(options, {1, nan, 2}), Error);
    EXPECT_THROW(sample(options, {9, 8, 7, nan}), Error);
    EXPECT_THROW(sample(options, {1, kInfinity}), Error);
    options.presence_penalty = 1.0F;
    options.logit_bias = {{1, 0.5F}};
    EXPECT_THROW(sample(options, {1, nan}, {1}), Error) << "a penalty does not hide it";
    EXPECT_THROW(sample(options, {1, kInfinity}, {1}), Error);
  }
  try {
    sample(greedy(), {1, nan});
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot sample: the logit of token 1 is nan");
  }
}

TEST(Sampler, LogitsAndHistoryMustFitTheVocabulary) {
  SamplingOptions options = plain();
  options.presence_penalty = 1.0F;
  Sampler sampler(options, 3);
  EXPECT_THROW(sampler.sample(Logits{1, 2}, {}), Error);
  EXPECT_THROW(sampler.sample(Logits{1, 2, 3, 4}, {}), Error);
  EXPECT_THROW(sampler.sample(Logits{1, 2, 3}, Ids{3}), Error);
  EXPECT_THROW(sampler.sample(Logits{1, 2, 3}, Ids{0, -1}), Error);
  EXPECT_EQ(sampler.step(), 0U) << "no draw was made";
  EXPECT_NO_THROW(sampler.sample(Logits{1, 2, 3}, Ids{2}));
}

// --- Draws --------------------------------------------------------------------------------------

TEST(Sampler, PickTakesTheFirstTokenWhoseCumulativeProbabilityExceedsU) {
  const std::vector<TokenProbability> halves = {{7, 0.5}, {3, 0.25}, {9, 0.25}, {1, 0.0}};
  EXPECT_EQ(pick(halves, 0.0), 7);
  EXPECT_EQ(pick(halves, 0.49), 7);
  EXPECT_EQ(pick(halves, 0.5), 3) << "exceeds, not reaches";
  EXPECT_EQ(pick(halves, 0.75), 9);
  EXPECT_EQ(pick(halves, std::nextafter(1.0, 0.0)), 9);
  const std::vector<TokenProbability> short_of_one = {{7, 0.5}, {3, 0.4999}, {1, 0.0}};
  EXPECT_EQ(pick(short_of_one, 0.99995), 3) << "rounding never picks a token without a chance";
}

TEST(Sampler, TheNthDrawDependsOnTheSeedAndNOnly) {
  SamplingOptions options = plain();
  options.seed = 5;
  const Logits flat(50, 0.0F);
  Sampler sampler = make(options, flat);
  Ids drawn;
  for (int i = 0; i < 20; ++i) drawn.push_back(sampler.sample(flat, {}));
  EXPECT_EQ(sampler.step(), 20U);
  for (std::size_t n = 20; n-- > 0;) {
    Sampler other = make(options, flat);
    other.set_step(n);
    EXPECT_EQ(other.sample(flat, {}), drawn[n]);
  }
  options.seed = 6;
  Sampler reseeded = make(options, flat);
  Ids others;
  for (int i = 0; i < 20; ++i) others.push_back(reseeded.sample(flat, {}));
  EXPECT_NE(others, drawn);
}

TEST(Sampler, DrawsFollowTheDistribution) {
  SamplingOptions options;
  options.top_k = 5;
  const Logits logits = {0.3F, -1.0F, 2.0F, 1.1F, 0.9F, -3.0F, 1.0F};
  Sampler sampler = make(options, logits);
  constexpr int draws = 40000;
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[sampler.sample(logits, {})];
  for (const auto& [id, probability] : sampler.distribution(logits, {})) {
    const double deviation = std::sqrt(draws * probability * (1 - probability));
    EXPECT_NEAR(counts[id], draws * probability, 5 * deviation) << id;
    counts.erase(id);
  }
  EXPECT_TRUE(counts.empty()) << "nothing outside of it is drawn";
}

}  // namespace
}  // namespace openelm
