#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/matmul_case.h"

namespace openelm::test {
namespace {

using kernels::Epilogue;

constexpr WeightType kTypes[] = {WeightType::f32, WeightType::f16, WeightType::bf16};
constexpr Epilogue kEpilogues[] = {Epilogue::store, Epilogue::add, Epilogue::swiglu,
                                   Epilogue::silu};

std::string describe(const MatmulCase& c, Epilogue epilogue) {
  return std::string(to_string(c.type)) + " n=" + std::to_string(c.n) +
         " k=" + std::to_string(c.k) + " m=" + std::to_string(c.m) +
         " epilogue=" + std::to_string(static_cast<int>(epilogue));
}

double exact_silu(double z) { return z / (1.0 + std::exp(-z)); }

/// W[row] · x in double, and how far a chain of k float fmas may be from it.
struct Dot {
  double value = 0.0;
  double bound = 0.0;
};
Dot exact_dot(const MatmulData& data, const MatmulCase& c, std::int32_t row, std::int32_t token) {
  Dot dot;
  for (std::int32_t k = 0; k < c.k; ++k) {
    const double product = static_cast<double>(data.weight(row, k)) * data.x(token)[k];
    dot.value += product;
    dot.bound += std::abs(product);
  }
  dot.bound *= (c.k + 2) * 0x1p-24;
  return dot;
}

class Matmul : public testing::TestWithParam<NamedTable> {};
class MatmulBits : public testing::TestWithParam<NamedTable> {};

TEST_P(Matmul, AgreesWithDoublePrecision) {
  for (const WeightType type : kTypes) {
    const MatmulCase c{.type = type, .n = 61, .k = 71, .m = 3};
    const MatmulData data(c);
    const auto start = data.run(*GetParam().table, Epilogue::store, 0, 0);
    const auto stored = data.run(*GetParam().table, Epilogue::store, 0, 4);
    const auto added = data.run(*GetParam().table, Epilogue::add, 0, 4);
    const auto activated = data.run(*GetParam().table, Epilogue::silu, 0, 4);
    const auto gated = data.run(*GetParam().table, Epilogue::swiglu, 0, 4);
    for (std::int32_t token = 0; token < c.m; ++token) {
      for (std::int32_t row = 0; row < 64; ++row) {
        const auto at = static_cast<std::size_t>(token * c.y_stride() + row);
        const Dot dot = exact_dot(data, c, row, token);
        ASSERT_NEAR(stored[at], dot.value, dot.bound) << to_string(type) << " row " << row;
        ASSERT_NEAR(added[at], start[at] + dot.value, dot.bound + 1e-6);
        ASSERT_NEAR(activated[at], exact_silu(dot.value), 1.1 * dot.bound + 1e-6);
        if (row >= 32) continue;
        const std::int32_t gate_row = row / 16 * 32 + row % 16;
        const Dot gate = exact_dot(data, c, gate_row, token);
        const Dot up = exact_dot(data, c, gate_row + 16, token);
        const double bound =
            1.1 * (gate.bound * std::abs(up.value) + up.bound * std::abs(gate.value)) + 1e-5;
        ASSERT_NEAR(gated[at], exact_silu(gate.value) * up.value, bound);
      }
    }
  }
}

TEST_P(Matmul, WritesOnlyItsTiles) {
  for (const Epilogue epilogue : kEpilogues) {
    const MatmulCase c{.type = WeightType::bf16, .n = 96, .k = 6, .m = 4};
    const MatmulData data(c);
    const auto untouched = data.run(*GetParam().table, epilogue, 0, 0);
    const auto y = data.run(*GetParam().table, epilogue, 2, 4);
    const std::int64_t begin = epilogue == Epilogue::swiglu ? 16 : 32;
    const std::int64_t end = epilogue == Epilogue::swiglu ? 32 : 64;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::int64_t column = static_cast<std::int64_t>(i) % c.y_stride();
      if (column >= begin && column < end) continue;
      ASSERT_EQ(y[i], untouched[i]) << "column " << column;
    }
  }
}

/// silu of one number, by a product with a matrix whose only weight is 1.
float silu_of(const kernels::KernelTable& table, float z) {
  float weights[32] = {1.0F};
  const PackedMatrix w{{WeightType::f32}, 1, 1, 2, reinterpret_cast<const std::byte*>(weights)};
  const float x[2] = {z, 0.0F};
  float y[16];
  const GuardedArray<float> scratch(kernels::matmul_scratch_floats(1));
  table.matmul[kernels::matmul_kind(w.format)]({.w = &w,
                                                .epilogue = Epilogue::silu,
                                                .x = x,
                                                .x_stride = 2,
                                                .m = 1,
                                                .y = y,
                                                .y_stride = 16,
                                                .tile_begin = 0,
                                                .tile_end = 1,
                                                .scratch = scratch.data()});
  return y[0];
}

TEST_P(Matmul, SiluIsAccurateAndHasTheRightLimits) {
  const kernels::KernelTable& table = *GetParam().table;
  for (float z = -87.0F; z <= 100.0F; z += 0.0371F) {
    const double exact = exact_silu(z);
    ASSERT_NEAR(silu_of(table, z), exact, std::abs(exact) * 4 * 0x1p-24) << "z = " << z;
  }
  EXPECT_EQ(silu_of(table, 100.0F), 100.0F);
  EXPECT_EQ(silu_of(table, 3e38F), 3e38F);
  EXPECT_EQ(silu_of(table, std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(silu_of(table, 0.0F), 0.0F);
  for (const float z : {-89.0F, -100.0F, -1e30F, -3e38F}) {
    EXPECT_LE(std::abs(silu_of(table, z)), 1e-36F);
    EXPECT_TRUE(std::signbit(silu_of(table, z)));
  }
  EXPECT_TRUE(std::isnan(silu_of(table, std::numeric_limits<float>::quiet_NaN())));
}

void expect_scalar_bits(const NamedTable& table, const MatmulCase& c,
                        std::initializer_list<Epilogue> epilogues) {
  const MatmulData data(c);
  for (const Epilogue epilogue : epilogues) {
    const std::int32_t end = epilogue == Epilogue::swiglu ? c.n_tiles() / 2 * 2 : c.n_tiles();
    const auto expected = data.run(kernels::scalar_table, epilogue, 0, end);
    ASSERT_TRUE(same_floats(expected, data.run(*table.table, epilogue, 0, end)))
        << describe(c, epilogue);
  }
}

TEST_P(MatmulBits, EveryNumberOfTokens) {
  for (const WeightType type : kTypes) {
    for (std::int32_t m = 1; m <= 40; ++m) {
      expect_scalar_bits(GetParam(), {.type = type, .n = 176, .k = 18, .m = m}, {Epilogue::store});
    }
  }
}

TEST_P(MatmulBits, EveryNumberOfTiles) {
  for (const WeightType type : kTypes) {
    for (std::int32_t tiles = 1; tiles <= 19; ++tiles) {
      for (const std::int32_t m : {1, 2, 3, 5, 13}) {
        expect_scalar_bits(GetParam(), {.type = type, .n = tiles * 16 - tiles % 3, .k = 10, .m = m},
                           {Epilogue::store, Epilogue::add, Epilogue::swiglu, Epilogue::silu});
      }
    }
  }
}

TEST_P(MatmulBits, ManyLengthsOfTheSum) {
  for (const WeightType type : kTypes) {
    for (const std::int32_t k : {1, 2, 3, 7, 64, 255, 511, 512, 513, 514, 1280, 1537}) {
      for (const std::int32_t m : {1, 7, 14}) {
        expect_scalar_bits(GetParam(), {.type = type, .n = 33, .k = k, .m = m},
                           {Epilogue::store, Epilogue::swiglu});
      }
    }
    expect_scalar_bits(GetParam(), {.type = type, .n = 32, .k = 5120, .m = 1}, {Epilogue::swiglu});
    expect_scalar_bits(GetParam(), {.type = type, .n = 32, .k = 5120, .m = 13}, {Epilogue::add});
    expect_scalar_bits(GetParam(), {.type = type, .n = 48, .k = 600, .m = 512}, {Epilogue::swiglu});
  }
}

TEST_P(MatmulBits, AnyRangeOfTiles) {
  const MatmulCase c{.type = WeightType::bf16, .n = 320, .k = 12, .m = 2};
  const MatmulData data(c);
  for (std::int32_t begin = 0; begin <= 20; ++begin) {
    for (std::int32_t end = begin; end <= 20; ++end) {
      for (const Epilogue epilogue : {Epilogue::store, Epilogue::swiglu}) {
        if (epilogue == Epilogue::swiglu && (begin % 2 != 0 || end % 2 != 0)) continue;
        const auto expected = data.run(kernels::scalar_table, epilogue, begin, end);
        ASSERT_TRUE(same_floats(expected, data.run(*GetParam().table, epilogue, begin, end)))
            << describe(c, epilogue) << " tiles " << begin << " to " << end;
      }
    }
  }
}

TEST_P(MatmulBits, SpecialNumbers) {
  for (const WeightType type : kTypes) {
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
      for (const std::int32_t k : {1, 2, 5, 16}) {
        expect_scalar_bits(
            GetParam(),
            {.type = type, .n = 64, .k = k, .m = 7, .seed = seed, .numbers = Numbers::special},
            {Epilogue::store, Epilogue::add, Epilogue::swiglu, Epilogue::silu});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Matmul, testing::ValuesIn(all_tables()), table_name);
INSTANTIATE_TEST_SUITE_P(Tables, MatmulBits, testing::ValuesIn(vector_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MatmulBits);

}  // namespace
}  // namespace openelm::test
