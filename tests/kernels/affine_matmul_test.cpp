#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/kernel_test.h"
#include "quant/pack.h"

namespace openelm::test {
namespace {

using kernels::Epilogue;

struct AffineCase {
  WeightFormat format;
  std::int32_t n_tiles;
  std::int32_t n_groups;
  std::int32_t m;
  Epilogue epilogue = Epilogue::store;
  Numbers numbers = Numbers::ordinary;
  std::int32_t x_block = 32;

  std::int32_t n() const { return n_tiles * 16; }
  std::int32_t k() const { return n_groups * format.group_size; }
};

std::string describe(const AffineCase& c) {
  return to_string(c.format) + " " + to_string(c.format.type) +
         " tiles=" + std::to_string(c.n_tiles) + " groups=" + std::to_string(c.n_groups) +
         " m=" + std::to_string(c.m) + " epilogue=" + std::to_string(static_cast<int>(c.epilogue));
}

/// Random quants, scales and biases in tiles, and random activations.
class AffineData {
 public:
  explicit AffineData(const AffineCase& c)
      : case_(c),
        quants_(static_cast<std::size_t>(c.n() * c.k() * c.format.bits / 8)),
        scales_(static_cast<std::size_t>(c.n() * c.n_groups) * size_of(c.format.type)),
        biases_(scales_.size()),
        tiles_(packed(nullptr).bytes()),
        x_(static_cast<std::size_t>(c.m * c.k())) {
    NumberSource weights(7, Numbers::ordinary);
    for (std::byte& quant : quants_) quant = static_cast<std::byte>(weights.next() * 128.0F + 128);
    // Full bytes are the case in which narrower sums would saturate.
    if (c.m == 1) std::fill(quants_.begin(), quants_.end(), std::byte{0xFF});
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.n() * c.n_groups); ++i) {
      put_stored(c.format.type, std::span(scales_), i, weights.next());
      put_stored(c.format.type, std::span(biases_), i, weights.next());
    }
    const RowMajor source{.format = c.format,
                          .data = quants_.data(),
                          .scales = scales_.data(),
                          .biases = biases_.data(),
                          .n_rows = c.n(),
                          .k = c.k()};
    for (std::int32_t tile = 0; tile < c.n_tiles; ++tile) {
      pack_tile(source, tile * 16, c.n(),
                tiles_.data() + static_cast<std::size_t>(tile) * view().tile_bytes());
    }
    NumberSource(9, c.numbers).fill(x_);
    if (c.m == 1 && c.numbers == Numbers::ordinary) std::fill(x_.begin(), x_.end(), 1.0F);
  }

  PackedMatrix view() const { return packed(tiles_.data()); }
  const std::vector<float>& x() const { return x_; }

  std::vector<float> run(const kernels::KernelTable& table) const {
    const std::size_t row = kernels::quantised_row_bytes(table, case_.k(), case_.x_block);
    GuardedArray<std::byte> xq(row * static_cast<std::size_t>(case_.m));
    for (std::int32_t t = 0; t < case_.m; ++t) {
      table.quantise(x_.data() + t * case_.k(), case_.k(), case_.format.group_size, case_.x_block,
                     xq.data() + static_cast<std::size_t>(t) * row);
    }
    const std::int32_t width = case_.epilogue == Epilogue::swiglu ? case_.n() / 2 : case_.n();
    GuardedArray<float> y(static_cast<std::size_t>(width * case_.m));
    NumberSource(11, Numbers::ordinary).fill(y.span());
    const GuardedArray<float> scratch(kernels::matmul_scratch_floats(case_.m));
    const PackedMatrix w = view();
    table.matmul[kernels::matmul_kind(w.format)]({.w = &w,
                                                  .epilogue = case_.epilogue,
                                                  .xq = xq.data(),
                                                  .xq_stride = static_cast<std::int64_t>(row),
                                                  .m = case_.m,
                                                  .y = y.data(),
                                                  .y_stride = width,
                                                  .tile_begin = 0,
                                                  .tile_end = case_.n_tiles,
                                                  .scratch = scratch.data()});
    EXPECT_TRUE(xq.intact() && y.intact() && scratch.intact() && tiles_.intact());
    return {y.begin(), y.end()};
  }

 private:
  PackedMatrix packed(std::byte* tiles) const {
    return {case_.format, case_.n(), case_.k(), case_.k(), tiles, case_.x_block};
  }

  AffineCase case_;
  std::vector<std::byte> quants_;
  std::vector<std::byte> scales_;
  std::vector<std::byte> biases_;
  GuardedArray<std::byte> tiles_;
  std::vector<float> x_;
};

class AffineMatmul : public testing::TestWithParam<NamedTable> {};

void expect_scalar_bits(const NamedTable& table, const AffineCase& c) {
  const AffineData data(c);
  EXPECT_TRUE(same_floats(data.run(kernels::scalar_table), data.run(*table.table)))
      << describe(c) << " on " << table.name;
}

constexpr std::array kEpilogues = {Epilogue::store, Epilogue::add, Epilogue::swiglu,
                                   Epilogue::silu};

TEST_P(AffineMatmul, HasTheScalarBits) {
  for (const std::int32_t bits : {8, 4}) {
    for (const std::int32_t group : {32, 64, 128}) {
      for (const WeightType type : {WeightType::f32, WeightType::f16, WeightType::bf16}) {
        // Few tokens, a mixture of strips, and enough for blocks and widened nibbles.
        for (const std::int32_t m : {1, 2, 3, 7, 9, 23}) {
          expect_scalar_bits(
              GetParam(),
              {{type, bits, group}, 4, 3, m, kEpilogues[static_cast<std::size_t>(m % 4)]});
          expect_scalar_bits(
              GetParam(),
              {.format = {type, bits, group}, .n_tiles = 3, .n_groups = 1, .m = m, .x_block = 16});
        }
      }
    }
  }
}

TEST_P(AffineMatmul, HasTheScalarBitsWhereTheSumIsCutIntoBlocks) {
  for (const std::int32_t bits : {8, 4}) {
    expect_scalar_bits(GetParam(), {{WeightType::bf16, bits, 64}, 2, 37, 11, Epilogue::add});
    expect_scalar_bits(GetParam(), {{WeightType::f32, bits, 32}, 2, 70, 11, Epilogue::swiglu});
    expect_scalar_bits(GetParam(), {{WeightType::f16, bits, 128}, 1, 20, 13, Epilogue::silu});
  }
}

TEST_P(AffineMatmul, NanAndInfinityComeThrough) {
  for (const std::int32_t bits : {8, 4}) {
    AffineCase c{{WeightType::bf16, bits, 32}, 2, 6, 6, Epilogue::store, Numbers::special};
    expect_scalar_bits(GetParam(), c);
    const AffineData data(c);
    const std::vector<float> y = data.run(*GetParam().table);
    for (std::int32_t token = 0; token < c.m; ++token) {
      bool finite = true;
      for (std::int32_t i = 0; i < c.k(); ++i) {
        finite = finite && std::isfinite(data.x()[static_cast<std::size_t>(token * c.k() + i)]);
      }
      if (finite) continue;
      EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(token * c.n())]));
    }
  }
}

/// Close to the product of the unpacked weights with the activations as they were: the rounding of
/// activations to 127 steps is all that is lost.
TEST_P(AffineMatmul, IsCloseToTheRealProduct) {
  for (const std::int32_t bits : {8, 4}) {
    const AffineCase c{{WeightType::f32, bits, 64}, 2, 8, 5};
    const AffineData data(c);
    const std::vector<float> y = data.run(*GetParam().table);
    std::vector<float> row(static_cast<std::size_t>(c.k()));
    for (std::int32_t r = 0; r < c.n(); ++r) {
      unpack_row(data.view(), r, row.data());
      for (std::int32_t token = 0; token < c.m; ++token) {
        double dot = 0.0;
        double weight_sum = 0.0;
        for (std::int32_t i = 0; i < c.k(); ++i) {
          const double w = row[static_cast<std::size_t>(i)];
          dot += w * data.x()[static_cast<std::size_t>(token * c.k() + i)];
          weight_sum += std::abs(w);
        }
        // |x| < 1, so that a rounding moves it by at most half of 1/127.
        ASSERT_NEAR(y[static_cast<std::size_t>(token * c.n() + r)], dot,
                    weight_sum * (0.5 / 127) + 1e-4);
      }
    }
  }
}

TEST_P(AffineMatmul, QuantisedBlocksSayWhatTheyStandFor) {
  const kernels::KernelTable& table = *GetParam().table;
  std::vector<float> x(128);
  NumberSource(3, Numbers::ordinary).fill(x);
  x[5] = -2.54F;
  std::fill(x.begin() + 96, x.end(), 1e-35F);
  std::vector<std::byte> xq(kernels::quantised_row_bytes(table, 128, 32));
  table.quantise(x.data(), 128, 64, 32, xq.data());
  kernels::QuantisedBlock blocks[4];
  for (std::size_t b = 0; b < 4; ++b) {
    std::memcpy(&blocks[b], xq.data() + b * xq.size() / 4, sizeof blocks[b]);
  }
  EXPECT_FLOAT_EQ(blocks[0].scale, 2.54F / 127.0F);
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    sum += static_cast<std::int32_t>(std::nearbyint(x[i] * (127.0F / 2.54F)));
  }
  EXPECT_EQ(blocks[0].sum, sum);
  // A group's first block has the total of its two.
  const auto share = [&](std::size_t b) {
    return blocks[b].scale * static_cast<float>(blocks[b].sum);
  };
  EXPECT_FLOAT_EQ(blocks[0].total, share(0) + share(1));
  EXPECT_EQ(blocks[1].total, 0.0F);
  EXPECT_FLOAT_EQ(blocks[2].total, share(2));
  EXPECT_EQ(blocks[3].scale, 0.0F);
  EXPECT_EQ(blocks[3].sum, 0);
}

INSTANTIATE_TEST_SUITE_P(Tables, AffineMatmul, testing::ValuesIn(all_tables()), table_name);

}  // namespace
}  // namespace openelm::test
