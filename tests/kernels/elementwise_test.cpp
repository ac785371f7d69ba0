#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel_test.h"

namespace openelm::test {
namespace {

using kernels::KernelTable;

/// Runs `kernel` over a copy of `start` that a guard page follows.
std::vector<float> run_in_place(const std::vector<float>& start,
                                const std::function<void(float*)>& kernel) {
  GuardedArray<float> data(start.size());
  std::copy(start.begin(), start.end(), data.begin());
  kernel(data.data());
  EXPECT_TRUE(data.intact());
  return {data.begin(), data.end()};
}

std::vector<float> numbers(std::size_t n, std::uint32_t seed, Numbers kind) {
  std::vector<float> values(n);
  NumberSource(seed, kind).fill(values);
  return values;
}

GuardedArray<float> guarded(const std::vector<float>& values) {
  GuardedArray<float> data(values.size());
  std::copy(values.begin(), values.end(), data.begin());
  return data;
}

constexpr std::int32_t kLengths[] = {1, 2, 4, 7, 8, 15, 16, 17, 24, 31, 32, 36, 64, 100, 128, 1280};

class Elementwise : public testing::TestWithParam<NamedTable> {
 protected:
  const KernelTable& table() const { return *GetParam().table; }
};
class ElementwiseBits : public Elementwise {};

std::vector<float> run_rms_norm(const KernelTable& table, const std::vector<float>& x,
                                const std::vector<float>& weight, bool in_place) {
  const auto n = static_cast<std::int32_t>(x.size());
  const GuardedArray<float> w = guarded(weight);
  if (in_place) {
    return run_in_place(x, [&](float* y) { table.rms_norm(y, w.data(), n, 1e-6F, y); });
  }
  const GuardedArray<float> input = guarded(x);
  return run_in_place(x, [&](float* y) { table.rms_norm(input.data(), w.data(), n, 1e-6F, y); });
}

TEST_P(Elementwise, RmsNormAgreesWithDoublePrecision) {
  for (const std::int32_t n : kLengths) {
    const auto x = numbers(static_cast<std::size_t>(n), 3, Numbers::ordinary);
    const auto weight = numbers(static_cast<std::size_t>(n), 4, Numbers::ordinary);
    const auto y = run_rms_norm(table(), x, weight, false);
    double squares = 0.0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    const double r = 1.0 / std::sqrt(squares / n + 1e-6);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = x[i] * r * weight[i];
      ASSERT_NEAR(y[i], exact, std::abs(exact) * 1e-5) << "n = " << n;
    }
  }
}

TEST_P(Elementwise, RopeRotatesPairs) {
  for (const std::int32_t half : {4, 8, 12, 16, 32, 36, 64, 128}) {
    const auto count = static_cast<std::size_t>(half);
    const auto x = numbers(2 * count, 5, Numbers::ordinary);
    std::vector<float> cos(count);
    std::vector<float> sin(count);
    for (std::size_t i = 0; i < count; ++i) {
      cos[i] = std::cos(static_cast<float>(i));
      sin[i] = std::sin(static_cast<float>(i));
    }
    const auto y =
        run_in_place(x, [&](float* p) { table().rope(p, cos.data(), sin.data(), half); });
    for (std::size_t i = 0; i < count; ++i) {
      const double angle = static_cast<double>(i);
      ASSERT_NEAR(y[i], x[i] * std::cos(angle) - x[i + count] * std::sin(angle), 1e-6);
      ASSERT_NEAR(y[i + count], x[i + count] * std::cos(angle) + x[i] * std::sin(angle), 1e-6);
    }
  }
}

struct SoftmaxRow {
  std::vector<float> p;
  float max;
  float sum;
};
SoftmaxRow run_softmax_row(const KernelTable& table, const std::vector<float>& s,
                           std::int32_t valid) {
  SoftmaxRow row{};
  row.p = run_in_place(s, [&](float* p) {
    row.max = table.softmax_row(p, static_cast<std::int32_t>(s.size()), valid, &row.sum);
  });
  return row;
}

TEST_P(Elementwise, SoftmaxRowAgreesWithDoublePrecision) {
  for (const std::int32_t n : {1, 5, 16, 33, 256}) {
    for (const std::int32_t valid : {1, n / 2 + 1, n}) {
      auto s = numbers(static_cast<std::size_t>(n), 6, Numbers::ordinary);
      for (float& value : s) value *= 10.0F;
      const SoftmaxRow row = run_softmax_row(table(), s, valid);
      const float max = *std::max_element(s.begin(), s.begin() + valid);
      EXPECT_EQ(row.max, max);
      double sum = 0.0;
      for (std::int32_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double exact = i < valid ? std::exp(static_cast<double>(s[at]) - max) : 0.0;
        ASSERT_NEAR(row.p[at], exact, exact * 2e-6) << "n = " << n << ", valid = " << valid;
        sum += exact;
      }
      ASSERT_NEAR(row.sum, sum, sum * 2e-6);
    }
  }
}

TEST_P(Elementwise, SoftmaxRowOfEqualZerosHasPositiveMaximum) {
  const SoftmaxRow row = run_softmax_row(table(), {-0.0F, -0.0F, -0.0F}, 3);
  EXPECT_FALSE(std::signbit(row.max));
  EXPECT_EQ(row.sum, 3.0F);
}

struct Running {
  float m;
  float l;
  std::vector<float> o;
};
Running run_softmax_merge(const KernelTable& table, Running state, const Running& next) {
  const GuardedArray<float> o2 = guarded(next.o);
  state.o = run_in_place(state.o, [&](float* o) {
    table.softmax_merge(&state.m, &state.l, o, next.m, next.l, o2.data(),
                        static_cast<std::int32_t>(next.o.size()));
  });
  return state;
}

TEST_P(Elementwise, SoftmaxMergeAgreesWithDoublePrecision) {
  for (const auto& [m, m2] : {std::pair{1.5F, -2.0F}, {-2.0F, 1.5F}, {3.0F, 3.0F}}) {
    const Running a{m, 2.5F, numbers(72, 7, Numbers::ordinary)};
    const Running b{m2, 4.0F, numbers(72, 8, Numbers::ordinary)};
    const Running merged = run_softmax_merge(table(), a, b);
    const double max = std::max(m, m2);
    const double fa = std::exp(m - max);
    const double fb = std::exp(m2 - max);
    EXPECT_EQ(merged.m, static_cast<float>(max));
    EXPECT_NEAR(merged.l, 2.5 * fa + 4.0 * fb, 1e-5);
    for (std::size_t i = 0; i < 72; ++i) {
      ASSERT_NEAR(merged.o[i], a.o[i] * fa + b.o[i] * fb, 1e-6);
    }
  }
}

TEST_P(Elementwise, SoftmaxMergeIntoNothingCopies) {
  const Running empty{-std::numeric_limits<float>::infinity(), 0.0F, std::vector<float>(64, 0.0F)};
  const Running next{-3.0F, 5.0F, numbers(64, 9, Numbers::ordinary)};
  const Running merged = run_softmax_merge(table(), empty, next);
  EXPECT_EQ(merged.m, next.m);
  EXPECT_EQ(merged.l, next.l);
  EXPECT_EQ(merged.o, next.o);
}

TEST_P(Elementwise, ScaleAndDivide) {
  const auto x = numbers(37, 10, Numbers::ordinary);
  const auto scaled = run_in_place(x, [&](float* p) { table().scale(p, 3.0F, 37); });
  const auto divided = run_in_place(x, [&](float* p) { table().divide(p, 3.0F, 37, p); });
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(scaled[i], x[i] * 3.0F);
    EXPECT_EQ(divided[i], x[i] / 3.0F);
  }
}

TEST_P(Elementwise, Multiply) {
  const auto x = numbers(37, 10, Numbers::special);
  const auto by = numbers(37, 11, Numbers::special);
  const auto product = run_in_place(x, [&](float* p) { table().multiply(p, by.data(), 37); });
  const auto expected =
      run_in_place(x, [&](float* p) { kernels::scalar_table.multiply(p, by.data(), 37); });
  EXPECT_TRUE(same_floats(expected, product));
}

TEST_P(Elementwise, NarrowToBytesKeepsEachNumberToHalfAStep) {
  const auto narrow = table().narrow[static_cast<int>(KvType::q8)];
  for (const std::int32_t n : {8, 24, 64, 128}) {
    std::vector<float> x = numbers(static_cast<std::size_t>(n), 12, Numbers::ordinary);
    std::vector<std::int8_t> bytes(x.size());
    std::vector<std::int8_t> expected(x.size());
    const float scale = narrow(x.data(), n, bytes.data());
    EXPECT_EQ(scale, kernels::scalar_table.narrow[static_cast<int>(KvType::q8)](x.data(), n,
                                                                                expected.data()));
    EXPECT_EQ(bytes, expected);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(static_cast<float>(bytes[i]) * scale, x[i], scale * 0.501F);
    }
    x[3] = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isnan(narrow(x.data(), n, bytes.data())));
    x.assign(x.size(), -1e-33F);
    EXPECT_EQ(narrow(x.data(), n, bytes.data()), 0.0F);
    EXPECT_EQ(bytes, std::vector<std::int8_t>(x.size()));
  }
}

std::vector<std::byte> run_narrow(const KernelTable& table, KvType type,
                                  const std::vector<float>& x) {
  const GuardedArray<float> input = guarded(x);
  GuardedArray<std::byte> y(x.size() * size_of(type));
  table.narrow[static_cast<int>(type)](input.data(), static_cast<std::int32_t>(x.size()), y.data());
  EXPECT_TRUE(y.intact());
  return {y.begin(), y.end()};
}

/// Floats on and next to the points where roundings and ranges of the narrow types change.
std::vector<float> edges() {
  std::vector<float> values;
  for (std::uint32_t high = 0; high < 0x10000; high += 3) {
    for (const std::uint32_t low : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x7FFFU, 0x8000U,
                                    0x8001U, 0xEFFFU, 0xF000U, 0xFFFFU}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  return values;
}

TEST_P(Elementwise, NarrowRoundsToNearestEven) {
  const auto x = edges();
  for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16}) {
    const auto y = run_narrow(table(), type, x);
    std::vector<std::byte> expected(y.size());
    for (std::size_t i = 0; i < x.size(); ++i) put_stored(type, std::span(expected), i, x[i]);
    EXPECT_EQ(y, expected) << to_string(type);
  }
}

TEST_P(ElementwiseBits, AllKernelsOverManyLengths) {
  const KernelTable& scalar = kernels::scalar_table;
  for (const Numbers kind : {Numbers::ordinary, Numbers::special}) {
    for (const std::int32_t n : kLengths) {
      for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE("n = " + std::to_string(n) + ", seed = " + std::to_string(seed));
        const auto count = static_cast<std::size_t>(n);
        const auto a = numbers(count, seed, kind);
        const auto b = numbers(count, seed + 100, kind);
        const auto pair = numbers(2 * count, seed + 200, kind);

        ASSERT_TRUE(
            same_floats(run_rms_norm(scalar, a, b, false), run_rms_norm(table(), a, b, false)));
        ASSERT_TRUE(
            same_floats(run_rms_norm(scalar, a, b, true), run_rms_norm(table(), a, b, true)));
        const auto rope = [&](const KernelTable& t) {
          return run_in_place(pair, [&](float* p) { t.rope(p, a.data(), b.data(), n); });
        };
        ASSERT_TRUE(same_floats(rope(scalar), rope(table())));
        const auto scale = [&](const KernelTable& t) {
          return run_in_place(a, [&](float* p) { t.scale(p, b[0], n); });
        };
        ASSERT_TRUE(same_floats(scale(scalar), scale(table())));
        const auto divide = [&](const KernelTable& t) {
          return run_in_place(a, [&](float* p) { t.divide(p, b[0], n, p); });
        };
        ASSERT_TRUE(same_floats(divide(scalar), divide(table())));
        for (const std::int32_t valid : {1, (n + 1) / 2, n}) {
          const SoftmaxRow expected = run_softmax_row(scalar, a, valid);
          const SoftmaxRow got = run_softmax_row(table(), a, valid);
          ASSERT_TRUE(same_floats(expected.p, got.p)) << "valid = " << valid;
          ASSERT_TRUE(same_floats({{expected.max, expected.sum}}, {{got.max, got.sum}}));
        }
        const Running first{a[0] * 20, 2.0F, a};
        const Running second{b[0] * 20, 3.0F, b};
        const Running expected = run_softmax_merge(scalar, first, second);
        const Running got = run_softmax_merge(table(), first, second);
        ASSERT_TRUE(same_floats(expected.o, got.o));
        ASSERT_TRUE(same_floats({{expected.m, expected.l}}, {{got.m, got.l}}));
        for (const KvType type : {KvType::f32, KvType::f16, KvType::bf16}) {
          ASSERT_EQ(run_narrow(scalar, type, a), run_narrow(table(), type, a));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Elementwise, testing::ValuesIn(all_tables()), table_name);
INSTANTIATE_TEST_SUITE_P(Tables, ElementwiseBits, testing::ValuesIn(vector_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ElementwiseBits);

}  // namespace
}  // namespace openelm::test
