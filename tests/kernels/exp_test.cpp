#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernel_test.h"
#include "kernels/ref/ref.h"

namespace openelm::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// Distance between `got` and the exact value, in units of the float grid at that value.
double error_in_ulps(float got, double exact) {
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::abs(static_cast<double>(got) - exact) / ulp;
}

TEST(Exp, IsWithinOneUlpOverItsWholeRange) {
  double worst = 0.0;
  for (double x = -104.5; x < 88.72; x += 0.00013) {
    const auto argument = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(argument));
    worst = std::max(worst, error_in_ulps(kernels::ref::exp(argument), exact));
  }
  EXPECT_LT(worst, 1.0);
}

TEST(Exp, IsAccurateNearZero) {
  for (float x = 1e-30F; x < 1.0F; x *= 1.01F) {
    EXPECT_LT(error_in_ulps(kernels::ref::exp(x), std::exp(static_cast<double>(x))), 1.0);
    EXPECT_LT(error_in_ulps(kernels::ref::exp(-x), std::exp(-static_cast<double>(x))), 1.0);
  }
}

TEST(Exp, HasTheRightLimits) {
  using kernels::ref::exp;
  EXPECT_EQ(exp(0.0F), 1.0F);
  EXPECT_EQ(exp(-0.0F), 1.0F);
  EXPECT_EQ(exp(-kInf), 0.0F);
  EXPECT_EQ(exp(-1e30F), 0.0F);
  EXPECT_EQ(exp(-104.0F), 0.0F);
  EXPECT_EQ(exp(-103.0F), 0x1p-149F);
  EXPECT_LT(exp(88.72F), kInf);
  EXPECT_EQ(exp(88.73F), kInf);
  EXPECT_EQ(exp(kInf), kInf);
  EXPECT_TRUE(std::isnan(exp(std::numeric_limits<float>::quiet_NaN())));
}

class ExpBits : public testing::TestWithParam<NamedTable> {};

/// The vector kernels' exp, seen through softmax_row: the first score is the greatest, 0.
TEST_P(ExpBits, EqualsTheScalarOne) {
  std::vector<float> s(1, 0.0F);
  for (double x = -105.0; x < 0.0; x += 0.00101) s.push_back(static_cast<float>(x));
  for (const float x : {-kInf, -1e30F, -0.0F, -0x1p-149F, -87.33655F, -87.33654F}) s.push_back(x);
  std::vector<float> expected(s.size());
  std::transform(s.begin(), s.end(), expected.begin(), kernels::ref::exp);

  float sum = 0.0F;
  const auto n = static_cast<std::int32_t>(s.size());
  GetParam().table->softmax_row(s.data(), n, n, &sum);
  EXPECT_TRUE(same_floats(expected, s));
}

INSTANTIATE_TEST_SUITE_P(Tables, ExpBits, testing::ValuesIn(all_tables()), table_name);

}  // namespace
}  // namespace openelm::test
