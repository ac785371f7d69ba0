#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>
#include <openelm/sampling.h>

namespace openelm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string usage_error(const SamplingOptions& options, std::int32_t vocab_size = 100) {
  try {
    options.validate(vocab_size);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(SamplingOptions, TheDefaultsAndTheEndsOfTheRangesAreValid) {
  EXPECT_EQ(usage_error({}), "");
  SamplingOptions options;
  options.temperature = 0.0F;
  options.top_k = std::numeric_limits<std::int32_t>::max();
  options.top_p = 0.0F;
  options.min_p = 1.0F;
  options.repetition_window = -1;
  options.frequency_penalty = -2.0F;
  options.logit_bias = {{0, -kInfinity}, {99, -100.0F}};
  EXPECT_EQ(usage_error(options), "");
}

TEST(SamplingOptions, FaultsNameTheOptionItsRangeAndWhatWasGot) {
  using Change = std::function<void(SamplingOptions&)>;
  const auto message = [](const Change& change) {
    SamplingOptions options;
    change(options);
    return usage_error(options);
  };
  EXPECT_EQ(message([](auto& o) { o.temperature = -1.0F; }),
            "temperature must be a number from 0, got -1");
  EXPECT_EQ(message([](auto& o) { o.top_k = -1; }), "top-k must be 0 (off) or more, got -1");
  EXPECT_EQ(message([](auto& o) { o.top_p = 1.5F; }),
            "top-p must be between 0 and 1 (off), got 1.5");
  EXPECT_EQ(message([](auto& o) { o.min_p = -0.5F; }),
            "min-p must be between 0 (off) and 1, got -0.5");
  EXPECT_EQ(message([](auto& o) { o.repetition_penalty = 0.0F; }),
            "repetition-penalty must be a number above 0 (1: off), got 0");
  EXPECT_EQ(message([](auto& o) { o.repetition_window = -2; }),
            "repetition-window must be -1 (all), 0 (off) or more, got -2");
  EXPECT_EQ(message([](auto& o) {
              o.logit_bias = {{100, 1.0F}};
            }),
            "logit-bias of token 100: the vocabulary has ids 0 to 99");
  EXPECT_NE(message([](auto& o) { o.logit_bias = {{-1, 1.0F}}; }), "");
  EXPECT_EQ(message([](auto& o) {
              o.logit_bias = {{7, kInfinity}};
            }),
            "logit-bias of token 7 must be a finite number or -inf, got inf");
}

TEST(SamplingOptions, NanAndInfinityAreRefusedEverywhere) {
  const std::vector<float SamplingOptions::*> fields = {
      &SamplingOptions::temperature,
      &SamplingOptions::top_p,
      &SamplingOptions::min_p,
      &SamplingOptions::repetition_penalty,
      &SamplingOptions::frequency_penalty,
      &SamplingOptions::presence_penalty,
  };
  for (const auto field : fields) {
    for (const float value : {std::nanf(""), kInfinity, -kInfinity}) {
      SamplingOptions options;
      options.*field = value;
      EXPECT_NE(usage_error(options), "") << value;
    }
  }
  SamplingOptions options;
  options.logit_bias = {{0, std::nanf("")}};
  EXPECT_NE(usage_error(options), "");
  EXPECT_THROW(Sampler(options, 10), UsageError) << "a sampler checks its options";
}

}  // namespace
}  // namespace openelm
