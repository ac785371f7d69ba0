#include "runtime/logit_scan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>

namespace openelm {
namespace {

using Logits = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> block_maxima(const Logits& logits) {
  std::vector<float> maxima(3, 99.0F);  // of an earlier call
  find_block_maxima(logits, maxima);
  return maxima;
}

Logits random_logits(std::size_t size, float spread) {
  std::mt19937 rng(static_cast<std::mt19937::result_type>(size));
  std::normal_distribution<float> normal(-1, spread);
  Logits logits(size);
  for (float& logit : logits) logit = normal(rng);
  return logits;
}

TEST(LogitScan, EveryBlockHasItsLargestLogit) {
  for (std::size_t size = 1; size < 5 * kLogitBlock; ++size) {
    Logits logits = random_logits(size, 3);
    if (size > 3) logits[size / 3] = -kInfinity;
    std::vector<float> expected;
    for (std::size_t begin = 0; begin < size; begin += kLogitBlock) {
      const auto from = logits.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto length = static_cast<std::ptrdiff_t>(std::min(kLogitBlock, size - begin));
      expected.push_back(*std::max_element(from, from + length));
    }
    EXPECT_EQ(block_maxima(logits), expected) << size;
  }
  EXPECT_EQ(block_maxima(Logits(kLogitBlock + 1, -kInfinity)), Logits(2, -kInfinity));
}

TEST(LogitScan, NanAndInfinityAreFoundAnywhereAndTheFirstIsNamed) {
  constexpr std::size_t size = 2 * kLogitBlock + 5;
  for (const float fault : {std::nanf(""), -std::nanf(""), kInfinity}) {
    for (std::size_t id = 0; id < size; ++id) {
      Logits logits(size, 1.0F);
      logits[0] = -kInfinity;  // no fault
      logits[id] = logits.back() = fault;
      try {
        block_maxima(logits);
        FAIL() << id;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("token " + std::to_string(id) + " is"),
                  std::string::npos)
            << error.what();
      }
    }
  }
}

TEST(LogitScan, TheBoundsHoldTheMassAndAreTight) {
  for (const std::size_t size : {1UL, 3UL, 40UL, 1000UL, 32003UL}) {
    for (const float spread : {0.0F, 0.5F, 3.0F, 20.0F, 1000.0F}) {
      for (const float temperature : {0.01F, 0.3F, 1.0F, 2.0F, 100.0F}) {
        Logits logits = random_logits(size, spread);
        if (size > 5) logits[5] = -kInfinity;
        const std::vector<float> maxima = block_maxima(logits);
        const float best = *std::max_element(logits.begin(), logits.end());
        double mass = 0;
        for (const float logit : logits) {
          mass += std::exp((double{logit} - best) / double{temperature});
        }
        const MassBounds bounds = bound_mass(logits, maxima, best, temperature);
        EXPECT_LE(bounds.low, mass) << size << " " << spread << " " << temperature;
        EXPECT_GE(bounds.high, mass) << size << " " << spread << " " << temperature;
        EXPECT_LT(bounds.high / bounds.low, 1.0001) << size << " " << spread << " " << temperature;
      }
    }
  }
}

TEST(LogitScan, TheBoundsHoldAtTheEndsOfTheRange) {
  const Logits logits = {3e38F, -3e38F, 3e38F, 1e-45F, -kInfinity};
  for (const float temperature : {1e-45F, 1e-38F, 1e-7F, 1e30F, 1e38F, 3.4e38F}) {
    double mass = 0;
    for (const float x : logits) mass += std::exp((double{x} - 3e38F) / double{temperature});
    const MassBounds bounds = bound_mass(logits, block_maxima(logits), 3e38F, temperature);
    EXPECT_LE(bounds.low, mass) << temperature;
    EXPECT_GE(bounds.high, mass) << temperature;
  }
}

}  // namespace
}  // namespace openelm
