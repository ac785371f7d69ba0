#pragma once

#include <cstdint>

#include "checkpoint/tensor_source.h"
#include "quant/pack.h"

namespace openelm {

/// A matrix of a checkpoint as packing and quantising read it.
inline RowMajor row_major(const TensorView& matrix) noexcept {
  return {.format = matrix.format,
          .data = matrix.data.data(),
          .scales = matrix.scales.data(),
          .biases = matrix.biases.data(),
          .n_rows = static_cast<std::int32_t>(matrix.shape[0]),
          .k = static_cast<std::int32_t>(matrix.shape[1])};
}

}  // namespace openelm
