#include "quant/pack.h"

#include <cstring>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/float16.h"

namespace openelm {
namespace {

/// A matrix whose value at (row, column) tells where it stands; small whole numbers are exact in
/// every type.
class Source {
 public:
  Source(WeightType type, std::int32_t n, std::int32_t k) : type_(type), n_(n), k_(k) {
    bytes_.resize(1 + static_cast<std::size_t>(n * k) * size_of(type));  // odd start: unaligned
    std::byte* p = bytes_.data() + 1;
    for (std::int32_t r = 0; r < n; ++r) {
      for (std::int32_t c = 0; c < k; ++c, p += size_of(type)) {
        const float value = at(r, c);
        const std::uint16_t half = type == WeightType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
        if (type == WeightType::f32) {
          std::memcpy(p, &value, sizeof(value));
        } else {
          std::memcpy(p, &half, sizeof(half));
        }
      }
    }
  }
  static float at(std::int32_t r, std::int32_t c) {
    return static_cast<float>((r * 7 + c * 3) % 251 + 1);
  }
  RowMajor view() const {
    return {.format = {type_}, .data = bytes_.data() + 1, .n_rows = n_, .k = k_};
  }

 private:
  WeightType type_;
  std::int32_t n_;
  std::int32_t k_;
  std::vector<std::byte> bytes_;
};

using Shape = std::tuple<WeightType, std::int32_t, std::int32_t>;
class Pack : public testing::TestWithParam<Shape> {};

TEST_P(Pack, RowsComeBackFromTheirTiles) {
  const auto [type, n, k] = GetParam();
  const Source source(type, n, k);
  PackedMatrix m{.format = {type}, .n = n, .k = k, .k_padded = padded_k(k)};
  std::vector<std::byte> tiles(m.bytes(), std::byte{0xFF});
  m.tiles = tiles.data();
  for (std::int32_t t = 0; t < m.n_tiles(); ++t) {
    pack_tile(source.view(), t * kTileRows, n,
              tiles.data() + static_cast<std::size_t>(t) * m.tile_bytes());
  }
  for (std::int32_t r = 0; r < n; ++r) {
    std::vector<float> row(static_cast<std::size_t>(k));
    unpack_row(m, r, row.data());
    for (std::int32_t c = 0; c < k; ++c) {
      ASSERT_EQ(row[static_cast<std::size_t>(c)], Source::at(r, c)) << r << ' ' << c;
    }
  }
  // Padding is zero: rows past n, and the column past an odd k.
  PackedMatrix whole = m;
  whole.n = m.n_tiles() * kTileRows;
  whole.k = m.k_padded;
  for (std::int32_t r = 0; r < whole.n; ++r) {
    std::vector<float> row(static_cast<std::size_t>(whole.k));
    unpack_row(whole, r, row.data());
    for (std::int32_t c = r < n ? k : 0; c < whole.k; ++c) {
      ASSERT_EQ(row[static_cast<std::size_t>(c)], 0.0F) << r << ' ' << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Pack,
    testing::Combine(testing::Values(WeightType::f32, WeightType::f16, WeightType::bf16),
                     testing::Values(1, 15, 16, 17, 40), testing::Values(1, 2, 7, 24, 64)));

TEST(Pack, TileOfAPartEndsAtItsLastRow) {
  const Source source(WeightType::bf16, 40, 4);
  PackedMatrix m{.format = {WeightType::bf16}, .n = 16, .k = 4, .k_padded = 4};
  std::vector<std::byte> tile(m.tile_bytes());
  m.tiles = tile.data();
  pack_tile(source.view(), 10, 13, tile.data());  // gate rows of a part that ends at 13
  std::vector<float> row(4);
  unpack_row(m, 2, row.data());
  EXPECT_EQ(row[1], Source::at(12, 1));
  unpack_row(m, 3, row.data());
  EXPECT_EQ(row[1], 0.0F);
}

TEST(Pack, WidenReadsEveryType) {
  for (const auto type : {WeightType::f32, WeightType::f16, WeightType::bf16}) {
    const Source source(type, 1, 9);
    std::vector<float> out(9);
    widen(type, source.view().data, 9, out.data());
    for (std::int32_t i = 0; i < 9; ++i) {
      EXPECT_EQ(out[static_cast<std::size_t>(i)], Source::at(0, i));
    }
  }
}

}  // namespace
}  // namespace openelm
