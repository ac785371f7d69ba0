#pragma once

#include <cstddef>
#include <cstdint>

#include <openelm/config.h>

namespace openelm {

/// Rows of a weight matrix that are interleaved into one tile, so that SIMD lanes are rows.
inline constexpr std::int32_t kTileRows = 16;

/// A view of a weight matrix W [n, k] cut into tiles of 16 rows; the bytes belong to Weights.
///
/// Tile t holds rows 16t .. 16t+15 (rows past n are zero) and is 64-byte aligned:
///   f32, f16   for each k: the 16 rows' values
///   bf16       for each pair (k, k+1): 16 rows x 2 values, k first: a 32-bit lane holds
///              one row's pair, so `lane << 16` is W[row][k] and `lane & 0xFFFF0000` W[row][k+1]
///   affine     for each group of k: 16 scales, 16 biases, then the quants
///       8 bits   for each quad (k .. k+3): 16 rows x 4 bytes
///       4 bits   for each 8 k: 16 rows x 4 bytes, byte j with q[k+j] low and q[k+4+j] high
/// k is padded with zeros to `k_padded`, a multiple of 2; with affine groups k is a multiple of
/// their size.
struct PackedMatrix {
  WeightFormat format;
  std::int32_t n = 0;
  std::int32_t k = 0;
  std::int32_t k_padded = 0;
  const std::byte* tiles = nullptr;
  /// Affine: the activations that meet it are rounded in blocks of so many, 16 or 32.
  std::int32_t x_block = 32;

  std::int32_t n_tiles() const noexcept { return (n + kTileRows - 1) / kTileRows; }
  /// Affine: scales and biases of one group of a tile.
  std::size_t group_header_bytes() const noexcept { return 2 * kTileRows * size_of(format.type); }
  /// Affine: one group of a tile, its scales and biases included.
  std::size_t group_bytes() const noexcept {
    return group_header_bytes() +
           static_cast<std::size_t>(format.group_size * format.bits / 8) * kTileRows;
  }
  std::size_t tile_bytes() const noexcept {
    if (format.affine()) return static_cast<std::size_t>(k / format.group_size) * group_bytes();
    return static_cast<std::size_t>(k_padded) * kTileRows * size_of(format.type);
  }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(n_tiles()) * tile_bytes(); }
  const std::byte* tile(std::int64_t t) const noexcept {
    return tiles + static_cast<std::size_t>(t) * tile_bytes();
  }
};

}  // namespace openelm
