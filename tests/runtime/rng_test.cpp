#include "runtime/rng.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace openelm {
namespace {

TEST(Rng, SeedZeroIsThePublishedSplitMix64Sequence) {
  EXPECT_EQ(random_bits(0, 0), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(random_bits(0, 1), 0x6E789E6AA1B965F4U);
  EXPECT_EQ(random_bits(0, 2), 0x06C45D188009454FU);
}

TEST(Rng, UniformNumbersLieInTheHalfOpenUnitInterval) {
  static_assert(uniform(0, 0) == static_cast<double>(0xE220A8397B1DCDAFU >> 11) * 0x1p-53);
  constexpr double largest = static_cast<double>(UINT64_MAX >> 11) * 0x1p-53;
  static_assert(largest < 1.0);
  for (std::uint64_t n = 0; n < 10000; ++n) {
    const double u = uniform(42, n);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
  }
}

TEST(Rng, NeighbouringSeedsAndStepsShareNothing) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (std::uint64_t n = 0; n < 200; ++n) seen.insert(random_bits(seed, n));
  }
  EXPECT_EQ(seen.size(), 200U * 200U);
}

/// Pearson's statistic over 256 equal bins; its mean is 255 and its deviation 23.
template <typename Draw>
double chi_square(Draw draw) {
  constexpr int draws = 256 * 400;
  std::array<int, 256> bins{};
  for (int i = 0; i < draws; ++i) ++bins[static_cast<std::size_t>(draw(i) * 256)];
  double sum = 0;
  for (const int count : bins) sum += (count - 400.0) * (count - 400.0) / 400.0;
  return sum;
}

TEST(Rng, IsUniformOverStepsAndOverSeeds) {
  const auto over_steps = [](int i) { return uniform(7, static_cast<std::uint64_t>(i)); };
  const auto over_seeds = [](int i) { return uniform(static_cast<std::uint64_t>(i), 7); };
  for (const double statistic : {chi_square(over_steps), chi_square(over_seeds)}) {
    EXPECT_GT(statistic, 255 - 5 * 23);
    EXPECT_LT(statistic, 255 + 5 * 23);
  }
}

}  // namespace
}  // namespace openelm
