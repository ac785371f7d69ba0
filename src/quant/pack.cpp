#include "quant/pack.h"

#include <algorithm>
#include <cmath>
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

/// Eight 4-bit quants, the first lowest, brought to a tile's order: byte j holds quant j in its low
/// and quant 4 + j in its high half.
std::uint32_t pair_nibbles(std::uint32_t quants) noexcept {
  const auto spread = [](std::uint32_t four) {
    const std::uint32_t two_bytes = (four | four << 8) & 0x00FF00FFU;
    return (two_bytes | two_bytes << 4) & 0x0F0F0F0FU;
  };
  return spread(quants & 0xFFFFU) | spread(quants >> 16) << 4;
}

void pack_affine_tile(const RowMajor& source, std::int32_t first_row, std::int32_t n_rows,
                      std::byte* tile) noexcept {
  const WeightFormat& format = source.format;
  const auto n_groups = static_cast<std::size_t>(source.k / format.group_size);
  const std::size_t number = size_of(format.type);
  const auto group_row_bytes = static_cast<std::size_t>(format.group_size * format.bits / 8);
  const std::size_t row_bytes = n_groups * group_row_bytes;
  const std::size_t header_row_bytes = n_groups * number;
  const auto row = static_cast<std::size_t>(first_row);

  const auto interleave_numbers = [&](const std::byte* numbers, std::size_t group) {
    const std::byte* const from = numbers + row * header_row_bytes + group * number;
    if (number == 4) {
      interleave<std::uint32_t>(from, header_row_bytes, n_rows, 1, tile);
    } else {
      interleave<std::uint16_t>(from, header_row_bytes, n_rows, 1, tile);
    }
    tile += kTileRows * number;
  };
  for (std::size_t group = 0; group < n_groups; ++group) {
    interleave_numbers(source.scales, group);
    interleave_numbers(source.biases, group);
    const std::size_t words = group_row_bytes / sizeof(std::uint32_t);
    interleave<std::uint32_t>(source.data + row * row_bytes + group * group_row_bytes, row_bytes,
                              n_rows, static_cast<std::int64_t>(words), tile);
    for (std::size_t i = 0; format.bits == 4 && i < words * kTileRows; ++i) {
      const std::uint32_t paired = pair_nibbles(load<std::uint32_t>(tile + i * sizeof paired));
      std::memcpy(tile + i * sizeof paired, &paired, sizeof paired);
    }
    tile += group_row_bytes * kTileRows;
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

void unpack_affine_row(const PackedMatrix& matrix, const std::byte* tile, std::size_t lane,
                       float* out) noexcept {
  const WeightFormat& format = matrix.format;
  const std::size_t number = size_of(format.type);
  for (std::int32_t first = 0; first < matrix.k; first += format.group_size) {
    const float scale = widen_one(format.type, tile + lane * number);
    const float bias = widen_one(format.type, tile + (kTileRows + lane) * number);
    const std::byte* const quants = tile + matrix.group_header_bytes() + lane * 4;
    for (std::size_t i = 0; i < static_cast<std::size_t>(format.group_size); ++i) {
      const std::size_t per_lane = format.bits == 8 ? 4 : 8;
      const auto byte = static_cast<unsigned>(quants[i / per_lane * kTileRows * 4 + i % 4]);
      const unsigned quant = format.bits == 8 ? byte : byte >> (i % per_lane / 4 * 4) & 0xFU;
      *out++ = std::fma(static_cast<float>(quant), scale, bias);
    }
    tile += matrix.group_bytes();
  }
}

}  // namespace

void pack_tile(const RowMajor& source, std::int32_t first_row, std::int32_t end_row,
               std::byte* tile) noexcept {
  if (source.format.affine()) {
    pack_affine_tile(source, first_row, std::clamp(end_row - first_row, 0, kTileRows), tile);
    return;
  }
  const WeightType type = source.format.type;
  const std::size_t value = size_of(type);
  const std::size_t row_bytes = static_cast<std::size_t>(source.k) * value;
  const std::byte* const rows = source.data + static_cast<std::size_t>(first_row) * row_bytes;
  const std::int32_t n_rows = std::clamp(end_row - first_row, 0, kTileRows);
  switch (type) {
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
  if (type == WeightType::bf16) {
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
  if (matrix.format.affine()) {
    unpack_affine_row(matrix, tile, lane, out);
    return;
  }
  const WeightType type = matrix.format.type;
  const std::size_t value = size_of(type);
  for (std::size_t i = 0; i < static_cast<std::size_t>(matrix.k); ++i) {
    const std::size_t index =
        type == WeightType::bf16 ? (i / 2 * kTileRows + lane) * 2 + i % 2 : i * kTileRows + lane;
    out[i] = widen_one(type, tile + index * value);
  }
}

void widen(WeightType type, const std::byte* data, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = widen_one(type, data + static_cast<std::size_t>(i) * size_of(type));
  }
}

}  // namespace openelm
