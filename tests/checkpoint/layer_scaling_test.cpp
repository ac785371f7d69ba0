#include "checkpoint/layer_scaling.h"

#include <vector>

#include <gtest/gtest.h>

namespace openelm {
namespace {

TEST(MakeDivisible, RoundsToTheNearestMultiple) {
  EXPECT_EQ(make_divisible(1000.0, 256), 1024);
  EXPECT_EQ(make_divisible(1137.0, 256), 1024);
  EXPECT_EQ(make_divisible(640.0, 256), 768);  // exactly half way: up
  EXPECT_EQ(make_divisible(1.9 * 1280, 256), 2560);
  EXPECT_EQ(make_divisible(3.3 * 1280, 256), 4352);
}

TEST(MakeDivisible, NeverLosesATenthOrMore) {
  EXPECT_EQ(make_divisible(0.67 * 1280, 256), 1024);  // 768 < 0.9 * 857.6
  EXPECT_EQ(make_divisible(0.56 * 3072, 512), 2048);  // 1536 < 0.9 * 1720.32
  EXPECT_EQ(make_divisible(10.0, 9), 9);              // 9 = 0.9 * 10: not less
}

TEST(MakeDivisible, IsAtLeastTheDivisor) {
  EXPECT_EQ(make_divisible(0.0, 64), 64);
  EXPECT_EQ(make_divisible(1.0, 64), 64);
}

TEST(SpreadMultipliers, RoundsAsNumpyDoes) {
  const std::vector<double> expected = {0.5, 1.67, 2.83, 4.0};
  EXPECT_EQ(spread_multipliers(0.5, 4.0, 4), expected);
  // np.round(np.linspace(0.125, 0.375, 3), 2): halves go to the even digit
  const std::vector<double> halves = {0.12, 0.25, 0.38};
  EXPECT_EQ(spread_multipliers(0.125, 0.375, 3), halves);
  // rint(1.005 * 100) = rint(100.49999999999999) = 100, and 2.675 * 100 = 267.5 goes to 268,
  // where decimal rounding of the double 2.67499... would give 2.67
  const std::vector<double> doubles = {1.0, 2.68};
  EXPECT_EQ(spread_multipliers(1.005, 2.675, 2), doubles);
}

TEST(SpreadMultipliers, TakesOneAndEqualEnds) {
  EXPECT_EQ(spread_multipliers(0.554, 9.0, 1), std::vector<double>{0.55});
  EXPECT_EQ(spread_multipliers(0.554, 0.554, 3), (std::vector<double>{0.55, 0.55, 0.55}));
  EXPECT_EQ(spread_multipliers(2.0, 1.0, 3), (std::vector<double>{2.0, 1.5, 1.0}));
}

TEST(ScaledHeads, AreWholeGroups) {
  EXPECT_EQ(scaled_heads(1280, 0.5, 64, 4), 12);
  EXPECT_EQ(scaled_heads(1280, 0.67, 64, 4), 16);
  EXPECT_EQ(scaled_heads(112, 6.9, 64, 4), 12);
  EXPECT_EQ(scaled_heads(80, 4.8, 128, 3), 3);
}

}  // namespace
}  // namespace openelm
