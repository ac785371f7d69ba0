#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu_features.h"
#include "kernels/kernel_test.h"
#include "quant/pack.h"

namespace openelm::test {
namespace {

using kernels::Epilogue;

constexpr std::int32_t kRows = 16 * 13;
constexpr std::int32_t kWidth = 1300;  // more than a block of the sum

/// Compute::fast by name, which does not ask whether it pays on this CPU.
class FastBf16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::detect_cpu_features().avx512bf16) GTEST_SKIP() << "no AVX512-BF16";
    table_ = &kernels::select("avx512bf16", Compute::fast);
    ASSERT_TRUE(table_->bf16_activations);
    std::vector<float> numbers(static_cast<std::size_t>(kRows * kWidth));
    NumberSource(1, Numbers::ordinary).fill(numbers);
    std::vector<std::byte> stored(numbers.size() * 2);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      put_stored(WeightType::bf16, std::span(stored), i, numbers[i]);
      numbers[i] = as_stored(WeightType::bf16, numbers[i]);
    }
    weights_ = numbers;
    tiles_.resize(stored.size());
    w_ = {{WeightType::bf16}, kRows, kWidth, kWidth, tiles_.data()};
    for (std::int32_t t = 0; t < w_.n_tiles(); ++t) {
      pack_tile({.format = w_.format, .data = stored.data(), .n_rows = kRows, .k = kWidth}, t * 16,
                kRows, tiles_.data() + static_cast<std::size_t>(t) * w_.tile_bytes());
    }
  }

  /// Products of the tokens from `first` on.
  std::vector<float> multiply(const std::vector<float>& x, std::int32_t first, std::int32_t m) {
    std::vector<std::byte> narrowed(static_cast<std::size_t>(m * kWidth) * 2);
    table_->narrow[static_cast<int>(KvType::bf16)](x.data() + first * kWidth, m * kWidth,
                                                   narrowed.data());
    std::vector<float> y(static_cast<std::size_t>(m * kRows));
    const GuardedArray<float> scratch(kernels::matmul_scratch_floats(m));
    table_->matmul[kernels::matmul_kind(w_.format)]({.w = &w_,
                                                     .epilogue = Epilogue::store,
                                                     .xq = narrowed.data(),
                                                     .xq_stride = kWidth * 2,
                                                     .m = m,
                                                     .y = y.data(),
                                                     .y_stride = kRows,
                                                     .tile_begin = 0,
                                                     .tile_end = w_.n_tiles(),
                                                     .scratch = scratch.data()});
    EXPECT_TRUE(scratch.intact());
    return y;
  }

  const kernels::KernelTable* table_ = nullptr;
  std::vector<float> weights_;
  std::vector<std::byte> tiles_;
  PackedMatrix w_;
};

TEST_F(FastBf16, TokensDoNotDependOnTheirCompany) {
  constexpr std::int32_t kTokens = 29;
  std::vector<float> x(static_cast<std::size_t>(kTokens * kWidth));
  NumberSource(2, Numbers::ordinary).fill(x);
  const std::vector<float> together = multiply(x, 0, kTokens);
  for (const std::int32_t m : {1, 2, 3, 7, 13}) {
    for (std::int32_t first = 0; first + m <= kTokens; first += m) {
      const std::vector<float> alone = multiply(x, first, m);
      ASSERT_TRUE(same_floats(
          std::span(together).subspan(static_cast<std::size_t>(first * kRows), alone.size()),
          alone))
          << m << " tokens from " << first;
    }
  }
}

TEST_F(FastBf16, IsTheProductOfRoundedActivations) {
  std::vector<float> x(kWidth);
  NumberSource(3, Numbers::ordinary).fill(x);
  const std::vector<float> y = multiply(x, 0, 1);
  for (std::int32_t row = 0; row < kRows; ++row) {
    double exact = 0.0;
    for (std::int32_t k = 0; k < kWidth; ++k) {
      exact += static_cast<double>(weights_[static_cast<std::size_t>(row * kWidth + k)]) *
               as_stored(WeightType::bf16, x[static_cast<std::size_t>(k)]);
    }
    ASSERT_NEAR(y[static_cast<std::size_t>(row)], exact, 1e-3) << row;
  }
}

TEST(FastCompute, IsExactWhereTheCpuHasNothingFaster) {
  EXPECT_EQ(&kernels::select("scalar", Compute::fast), &kernels::scalar_table);
  EXPECT_FALSE(kernels::select("auto", Compute::exact).bf16_activations);
}

}  // namespace
}  // namespace openelm::test
