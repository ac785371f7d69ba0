#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <openelm/sampling.h>

namespace openelm {
namespace {

using Json = nlohmann::json;

/// The reference's first steps, checked without a model: each checkpoint's case at temperature 1
/// and without filters lists the probabilities of the 60 best tokens, whose logarithms are their
/// logits up to a constant. From these follow the cases whose top-k is at most 60.
TEST(SamplingGolden, TemperatureTopKAndTopPGiveTheReferencesDistributions) {
  const Json golden = Json::parse(std::ifstream(OPENELM_TEST_DATA "/golden/sampling.json"));
  std::map<std::string, std::vector<float>> logits_of;
  int checked = 0;
  for (const Json& example : golden["cases"]) {
    const std::vector<TokenId> ids = example["first_step_ids"];
    const std::vector<double> probabilities = example["first_step_probs"];
    SamplingOptions options;
    options.temperature = example["temperature"];
    options.top_k = example["top_k"];
    options.top_p = example["top_p"];
    std::vector<float>& logits = logits_of[example["checkpoint"]];
    if (logits.empty()) {  // the case without filters comes first
      ASSERT_EQ(options.temperature, 1.0F);
      logits.assign(example["first_step_kept"].get<std::size_t>(), -100.0F);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        logits[static_cast<std::size_t>(ids[i])] = static_cast<float>(std::log(probabilities[i]));
      }
      continue;
    }
    if (options.top_k == 0) continue;

    Sampler sampler(options, static_cast<std::int32_t>(logits.size()));
    const auto distribution = sampler.distribution(logits, {});
    ASSERT_EQ(distribution.size(), example["first_step_kept"].get<std::size_t>());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(distribution[i].id, ids[i]);
      EXPECT_NEAR(distribution[i].probability, probabilities[i], 1e-6);
    }
    EXPECT_EQ(pick(distribution, example["uniforms"][0]), example["sequence"][0]);
    ++checked;
  }
  EXPECT_EQ(checked, 6);
}

}  // namespace
}  // namespace openelm
