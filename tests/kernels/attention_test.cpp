#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/kernel_test.h"

namespace openelm::test {
namespace {

constexpr KvType kTypes[] = {KvType::f32, KvType::f16, KvType::bf16, KvType::q8};
constexpr std::int32_t kHeadDims[] = {8, 16, 24, 32, 64, 72, 80, 128, 256};

struct AttentionCase {
  KvType type;
  std::int32_t head_dim;
  std::int32_t rows;
  std::int32_t n;  ///< tiles of keys, or positions of values
  std::uint32_t seed = 1;
  Numbers numbers = Numbers::ordinary;
};

std::string describe(const AttentionCase& c) {
  return std::string(to_string(c.type)) + " head_dim=" + std::to_string(c.head_dim) +
         " rows=" + std::to_string(c.rows) + " n=" + std::to_string(c.n);
}

/// Of sums of products of numbers below 1, or below 1 and 127.
double tolerance(KvType type) { return type == KvType::q8 ? 127e-5 : 1e-5; }

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Stored numbers of the case's type and their values as floats.
struct Stored {
  Stored(KvType type, std::size_t count, NumberSource& source)
      : bytes(count * size_of(type)), values(count) {
    for (std::size_t i = 0; i < count; ++i) {
      const float value = source.next();
      put_stored(type, bytes.span(), i, value);
      values[i] = as_stored(type, value);
    }
  }
  GuardedArray<std::byte> bytes;
  std::vector<float> values;
};

struct ScoresData {
  explicit ScoresData(const AttentionCase& c)
      : source(c.seed, c.numbers),
        q_stride(c.head_dim + 3),
        s_stride(c.n * 16 + 5),
        q(index((c.rows - 1) * q_stride + c.head_dim)),
        k(c.type, index(c.n * c.head_dim * 16), source) {
    source.fill(q.span());
  }

  std::vector<float> run(const kernels::KernelTable& table, const AttentionCase& c) const {
    GuardedArray<float> s(index((c.rows - 1) * s_stride + c.n * 16));
    std::fill(s.begin(), s.end(), -77.0F);
    table.scores[static_cast<int>(c.type)]({.q = q.data(),
                                            .q_stride = q_stride,
                                            .rows = c.rows,
                                            .k = k.bytes.data(),
                                            .n_tiles = c.n,
                                            .head_dim = c.head_dim,
                                            .s = s.data(),
                                            .s_stride = s_stride});
    EXPECT_TRUE(s.intact() && q.intact() && k.bytes.intact());
    return {s.begin(), s.end()};
  }

  NumberSource source;
  std::int64_t q_stride;
  std::int64_t s_stride;
  GuardedArray<float> q;
  Stored k;
};

struct ValuesData {
  explicit ValuesData(const AttentionCase& c)
      : source(c.seed, c.numbers),
        width(kernels::v_stride(c.head_dim)),
        p_stride(c.n + 3),
        o_stride(width + 5),
        p(index((c.rows - 1) * p_stride + c.n)),
        v(c.type, index(c.n * width), source) {
    source.fill(p.span());
  }

  std::vector<float> run(const kernels::KernelTable& table, const AttentionCase& c,
                         bool accumulate) const {
    GuardedArray<float> o(index((c.rows - 1) * o_stride + width));
    std::fill(o.begin(), o.end(), 0.75F);
    table.values[static_cast<int>(c.type)]({.p = p.data(),
                                            .p_stride = p_stride,
                                            .rows = c.rows,
                                            .v = v.bytes.data(),
                                            .n = c.n,
                                            .head_dim = c.head_dim,
                                            .o = o.data(),
                                            .o_stride = o_stride,
                                            .accumulate = accumulate});
    EXPECT_TRUE(o.intact() && p.intact() && v.bytes.intact());
    return {o.begin(), o.end()};
  }

  NumberSource source;
  std::int64_t width;
  std::int64_t p_stride;
  std::int64_t o_stride;
  GuardedArray<float> p;
  Stored v;
};

class Attention : public testing::TestWithParam<NamedTable> {};
class AttentionBits : public testing::TestWithParam<NamedTable> {};

TEST_P(Attention, ScoresAgreeWithDoublePrecision) {
  for (const KvType type : kTypes) {
    const AttentionCase c{.type = type, .head_dim = 24, .rows = 5, .n = 3};
    const ScoresData data(c);
    const auto s = data.run(*GetParam().table, c);
    for (std::int32_t row = 0; row < c.rows; ++row) {
      for (std::int32_t p = 0; p < c.n * 16; ++p) {
        double exact = 0.0;
        for (std::int32_t d = 0; d < c.head_dim; ++d) {
          const float key = data.k.values[index((p / 16 * c.head_dim + d) * 16 + p % 16)];
          exact += static_cast<double>(key) * data.q[index(row * data.q_stride + d)];
        }
        ASSERT_NEAR(s[index(row * data.s_stride + p)], exact, tolerance(type)) << describe(c);
      }
      if (row + 1 < c.rows) {
        for (std::int64_t gap = c.n * 16; gap < data.s_stride; ++gap) {
          ASSERT_EQ(s[index(row * data.s_stride + gap)], -77.0F);
        }
      }
    }
  }
}

TEST_P(Attention, ValuesAgreeWithDoublePrecision) {
  for (const KvType type : kTypes) {
    for (const bool accumulate : {false, true}) {
      const AttentionCase c{.type = type, .head_dim = 24, .rows = 5, .n = 37};
      const ValuesData data(c);
      const auto o = data.run(*GetParam().table, c, accumulate);
      for (std::int32_t row = 0; row < c.rows; ++row) {
        for (std::int32_t d = 0; d < 24; ++d) {
          double exact = accumulate ? 0.75 : 0.0;
          for (std::int32_t p = 0; p < c.n; ++p) {
            exact += static_cast<double>(data.v.values[index(p * data.width + d)]) *
                     data.p[index(row * data.p_stride + p)];
          }
          ASSERT_NEAR(o[index(row * data.o_stride + d)], exact, 2 * tolerance(type)) << describe(c);
        }
        if (row + 1 < c.rows) {
          for (std::int64_t gap = data.width; gap < data.o_stride; ++gap) {
            ASSERT_EQ(o[index(row * data.o_stride + gap)], 0.75F);
          }
        }
      }
    }
  }
}

void expect_scalar_scores(const NamedTable& table, const AttentionCase& c) {
  const ScoresData data(c);
  ASSERT_TRUE(same_floats(data.run(kernels::scalar_table, c), data.run(*table.table, c)))
      << "scores " << describe(c);
}

void expect_scalar_values(const NamedTable& table, const AttentionCase& c) {
  const ValuesData data(c);
  for (const bool accumulate : {false, true}) {
    ASSERT_TRUE(same_floats(data.run(kernels::scalar_table, c, accumulate),
                            data.run(*table.table, c, accumulate)))
        << "values " << describe(c) << " accumulate=" << accumulate;
  }
}

TEST_P(AttentionBits, EveryHeadDim) {
  for (const KvType type : kTypes) {
    for (const std::int32_t head_dim : kHeadDims) {
      for (const std::int32_t rows : {1, 4, 7}) {
        expect_scalar_scores(GetParam(),
                             {.type = type, .head_dim = head_dim, .rows = rows, .n = 3});
        expect_scalar_values(GetParam(),
                             {.type = type, .head_dim = head_dim, .rows = rows, .n = 37});
      }
    }
  }
}

TEST_P(AttentionBits, EveryNumberOfRows) {
  for (const KvType type : kTypes) {
    for (std::int32_t rows = 1; rows <= 64; ++rows) {
      expect_scalar_scores(GetParam(), {.type = type, .head_dim = 16, .rows = rows, .n = 5});
      expect_scalar_values(GetParam(), {.type = type, .head_dim = 80, .rows = rows, .n = 9});
    }
  }
}

TEST_P(AttentionBits, EveryLength) {
  for (const KvType type : kTypes) {
    for (std::int32_t n = 1; n <= 40; ++n) {
      expect_scalar_scores(GetParam(), {.type = type, .head_dim = 8, .rows = 4, .n = n});
      expect_scalar_values(GetParam(), {.type = type, .head_dim = 64, .rows = 4, .n = n});
    }
    expect_scalar_values(GetParam(), {.type = type, .head_dim = 64, .rows = 16, .n = 256});
  }
}

TEST_P(AttentionBits, SpecialNumbers) {
  for (const KvType type : kTypes) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
      AttentionCase c{.type = type, .head_dim = 8, .rows = 5, .n = 4, .seed = seed};
      c.numbers = Numbers::special;
      expect_scalar_scores(GetParam(), c);
      expect_scalar_values(GetParam(), c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Attention, testing::ValuesIn(all_tables()), table_name);
INSTANTIATE_TEST_SUITE_P(Tables, AttentionBits, testing::ValuesIn(vector_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionBits);

}  // namespace
}  // namespace openelm::test
