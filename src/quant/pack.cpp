#include "quant/pack.h"

#include <algorithm>
#include <cstring>

#include "base/float16.h"

namespace openelm {
namespace {

template <typename T>
T load(const std::byte* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

/// Transposes 16 rows of `n` elements into out[n][16]. A whole tile takes the loop whose trip count
/// is known, which compilers unroll.
template <typename T>
void interleave(const std::byte* rows, std::size_t row_bytes, std::int32_t n_rows, std::int64_t n,
                std::byte* out) noexcept {
  for (std::int64_t j = 0; j < n; ++j) {
    T lanes[kTileRows] = {};
    const std::byte* const column = rows + static_cast<std::size_t>(j) * sizeof(T);
    if (n_rows == kTileRows) {
      for (std::size_t r = 0; r < kTileRows; ++r) lanes[r] = load<T>(column + r * row_bytes);
    } else {
      for (std::size_t r = 0; r < static_cast<std::size_t>(n_rows); ++r) {
        lanes[r] = load<T>(column + r * row_bytes);
      }
    }
    std::memcpy(out + static_cast<std::size_t>(j) * sizeof(lanes), lanes, sizeof(lanes));
  }
}

float widen_one(WeightType type, const std::byte* p) noexcept {
  switch (type) {
    case WeightType::f32:
      return load<float>(p);
    case WeightType::f16:
      return f16_to_f32(load<std::uint16_t>(p));
    case WeightType::bf16:
      return bf16_to_f32(load<std::uint16_t>(p));
  }
  return 0.0F;
}

}  // namespace

void pack_tile(const RowMajor& source, std::int32_t first_row, std::int32_t end_row,
               std::byte* tile) noexcept {
  const std::size_t value = size_of(source.type);
  const std::size_t row_bytes = static_cast<std::size_t>(source.k) * value;
  const std::byte* const rows = source.data + static_cast<std::size_t>(first_row) * row_bytes;
  const std::int32_t n_rows = std::clamp(end_row - first_row, 0, kTileRows);
  switch (source.type) {
    case WeightType::f32:
      interleave<std::uint32_t>(rows, row_bytes, n_rows, source.k, tile);
      break;
    case WeightType::f16:
      interleave<std::uint16_t>(rows, row_bytes, n_rows, source.k, tile);
      break;
    case WeightType::bf16:
      interleave<std::uint32_t>(rows, row_bytes, n_rows, source.k / 2, tile);
      break;
  }
  if (source.k % 2 == 0) return;
  // The odd last column: alone in its pair (bf16), or followed by a column of zeros.
  const std::size_t last = static_cast<std::size_t>(source.k - 1);
  if (source.type == WeightType::bf16) {
    std::uint32_t lanes[kTileRows] = {};
    for (std::size_t r = 0; r < static_cast<std::size_t>(n_rows); ++r) {
      lanes[r] = load<std::uint16_t>(rows + r * row_bytes + last * value);
    }
    std::memcpy(tile + last / 2 * sizeof(lanes), lanes, sizeof(lanes));
  } else {
    std::memset(tile + (last + 1) * kTileRows * value, 0, kTileRows * value);
  }
}

void unpack_row(const PackedMatrix& matrix, std::int32_t row, float* out) noexcept {
  const std::byte* const tile = matrix.tile(row / kTileRows);
  const auto lane = static_cast<std::size_t>(row % kTileRows);
  const std::size_t value = size_of(matrix.type);
  for (std::size_t i = 0; i < static_cast<std::size_t>(matrix.k); ++i) {
    const std::size_t index = matrix.type == WeightType::bf16
                                  ? (i / 2 * kTileRows + lane) * 2 + i % 2
                                  : i * kTileRows + lane;
    out[i] = widen_one(matrix.type, tile + index * value);
  }
}

void widen(WeightType type, const std::byte* data, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = widen_one(type, data + static_cast<std::size_t>(i) * size_of(type));
  }
}

}  // namespace openelm
