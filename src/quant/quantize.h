#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <openelm/config.h>

#include "parallel/partition.h"
#include "quant/pack.h"

namespace openelm {

/// Where quantised rows go, in the layout of an affine RowMajor.
struct AffineRows {
  std::byte* data = nullptr;    // [rows, k * bits / 8]
  std::byte* scales = nullptr;  // [rows, k / group_size]
  std::byte* biases = nullptr;  // [rows, k / group_size]
};

/// Memory for quantised rows.
struct AffineBuffers {
  std::vector<std::byte> data, scales, biases;

  /// For `n_weights` weights, a whole number of groups.
  void resize(const WeightFormat& format, std::size_t n_weights);
  AffineRows rows() noexcept { return {data.data(), scales.data(), biases.data()}; }
};

/// Quantises rows [rows.begin, rows.end) of a plain `source` to `format`; the first of them is
/// written at the start of `out`. Scale and bias of a group are rounded to format.type first and
/// the quants chosen for what they then are; both are searched for, and the squared error is never
/// larger than from scale = (max - min) / (2^bits - 1), bias = min (where these are normal numbers;
/// smaller ranges become constants). The result depends on nothing but the group's weights. Returns
/// the first row that holds a NaN, an infinity, or numbers past the range of format.type.
std::optional<std::int64_t> quantize_rows(const RowMajor& source, Range rows,
                                          const WeightFormat& format,
                                          const AffineRows& out) noexcept;

/// Why that row of a plain matrix cannot be quantised, for a message.
std::string unquantizable_reason(const RowMajor& source, std::int64_t row);

}  // namespace openelm
