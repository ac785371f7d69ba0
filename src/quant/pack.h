#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/packed_matrix.h"

namespace openelm {

/// A matrix as checkpoints store it, row-major, possibly unaligned. Plain: `data` is [n_rows, k]
/// numbers. Affine, as MLX stores them: `data` is [n_rows, k] quants, little-endian bit fields with
/// the first k lowest; `scales` and `biases` are [n_rows, k / group_size] numbers.
struct RowMajor {
  WeightFormat format;
  const std::byte* data = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* biases = nullptr;
  std::int32_t n_rows = 0;
  std::int32_t k = 0;
};

/// Writes rows [first_row, first_row + 16) of `source` as one tile (see PackedMatrix) to `tile`;
/// rows at and past `end_row` become zeros.
void pack_tile(const RowMajor& source, std::int32_t first_row, std::int32_t end_row,
               std::byte* tile) noexcept;

/// Row `row` of `matrix` as float32 into out[k]: the embedding look-up. An affine weight is
/// fma(q, scale, bias).
void unpack_row(const PackedMatrix& matrix, std::int32_t row, float* out) noexcept;

/// An array of `n` stored values as float32.
void widen(WeightType type, const std::byte* data, std::int64_t n, float* out) noexcept;

/// k rounded up to what tiles hold.
constexpr std::int32_t padded_k(std::int32_t k) noexcept { return k + (k & 1); }

}  // namespace openelm
