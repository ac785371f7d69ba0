#include "base/float16.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace openelm {
namespace {

/// The value of a finite binary16, from its definition.
double f16_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int mantissa = bits & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_f16_nan(std::uint16_t bits) { return (bits & 0x7FFF) > 0x7C00; }

TEST(Float16, EveryF16WidensExactly) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = f16_to_f32(bits);
    if (is_f16_nan(bits)) {
      ASSERT_TRUE(std::isnan(value)) << i;
    } else if ((bits & 0x7FFF) == 0x7C00) {
      ASSERT_EQ(value, (bits & 0x8000) != 0 ? -INFINITY : INFINITY);
    } else {
      ASSERT_EQ(value, f16_value(bits)) << i;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << i;
    }
  }
}

TEST(Float16, EveryF16ComesBack) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const std::uint16_t back = f32_to_f16(f16_to_f32(bits));
    // NaN is made quiet and keeps the rest of its payload.
    ASSERT_EQ(back, is_f16_nan(bits) ? bits | 0x200 : bits) << i;
  }
}

TEST(Float16, F32RoundsToNearestEvenF16) {
  for (std::uint32_t i = 0; i < 0x7BFF; ++i) {
    const auto low = static_cast<std::uint16_t>(i);
    const auto high = static_cast<std::uint16_t>(i + 1);
    const auto middle = static_cast<float>((f16_value(low) + f16_value(high)) / 2);  // exact
    const std::uint16_t even = i % 2 == 0 ? low : high;
    ASSERT_EQ(f32_to_f16(middle), even) << i;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), low) << i;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, INFINITY)), high) << i;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << i;
  }
}

TEST(Float16, F32BeyondF16BecomesInfinity) {
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(3e38F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-INFINITY), 0xFC00);
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0x0000);
  EXPECT_EQ(f32_to_f16(-0x1p-149F), 0x8000);
}

TEST(Float16, EveryBf16ComesBack) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = bf16_to_f32(bits);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), i << 16);
    ASSERT_EQ(f32_to_bf16(value), std::isnan(value) ? bits | 0x40 : bits) << i;
  }
}

TEST(Float16, F32RoundsToNearestEvenBf16) {
  for (std::uint32_t i = 0; i < 0x7F80; ++i) {
    const auto low = static_cast<std::uint16_t>(i);
    const auto high = static_cast<std::uint16_t>(i + 1);  // the last one is infinity
    const std::uint32_t middle = i << 16 | 0x8000U;
    const std::uint16_t even = i % 2 == 0 ? low : high;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), even) << i;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), low) << i;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), high) << i;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle | 0x80000000U)), even | 0x8000) << i;
  }
}

}  // namespace
}  // namespace openelm
