#include "runtime/logprobs.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>
#include <openelm/sampling.h>

namespace openelm {
namespace {

const std::vector<float> kLogits = {1.0F, 3.0F, -2.0F, 3.0F};
const double kSum = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(-2.0);

TEST(Logprobs, IsTheLogOfTheSoftmax) {
  EXPECT_NEAR(log_probability(kLogits, 0), 1.0 - std::log(kSum), 1e-14);
  EXPECT_NEAR(log_probability(kLogits, 2), -2.0 - std::log(kSum), 1e-14);
  EXPECT_EQ(log_probability(std::vector<float>{5.0F}, 0), 0.0);
}

TEST(Logprobs, LargeLogitsDoNotOverflow) {
  EXPECT_NEAR(log_probability(std::vector<float>{3e38F, 3e38F}, 1), -std::log(2.0), 1e-14);
  EXPECT_NEAR(log_probability(std::vector<float>{-3e38F, -3e38F}, 0), -std::log(2.0), 1e-14);
  EXPECT_EQ(log_probability(std::vector<float>{0.0F, -1000.0F}, 1), -1000.0);
}

TEST(Logprobs, ALargeVocabularyIsSummedInDouble) {
  const std::vector<float> equal(32000, 0.1F);
  EXPECT_NEAR(log_probability(equal, 31999), -std::log(32000.0), 1e-12);
}

TEST(Logprobs, TheBestComeInOrderAndTiesByLowerId) {
  const TokenLogprobs result = token_logprobs(kLogits, 2, 3);
  EXPECT_EQ(result.token, 2);
  EXPECT_EQ(result.logprob, log_probability(kLogits, 2));
  ASSERT_EQ(result.top.size(), 3U);
  EXPECT_EQ(result.top[0].first, 1);
  EXPECT_EQ(result.top[1].first, 3);
  EXPECT_EQ(result.top[2].first, 0);
  for (const auto& [id, logprob] : result.top) EXPECT_EQ(logprob, log_probability(kLogits, id));
}

TEST(Logprobs, NoneOrMoreThanThereAre) {
  EXPECT_TRUE(token_logprobs(kLogits, 0, 0).top.empty());
  EXPECT_EQ(token_logprobs(kLogits, 0, 100).top.size(), 4U);
}

TEST(Logprobs, ATokenOutsideTheVocabularyIsAnError) {
  EXPECT_THROW(log_probability(kLogits, 4), Error);
  EXPECT_THROW(log_probability(kLogits, -1), Error);
  EXPECT_THROW(token_logprobs(kLogits, 4, 1), Error);
}

}  // namespace
}  // namespace openelm
