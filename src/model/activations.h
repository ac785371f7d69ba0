#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <openelm/config.h>

#include "base/aligned_buffer.h"

namespace openelm {

/// Rows of float32 values. The row stride is a whole number of tiles plus one, never a multiple of
/// 4 KiB, so that the rows a kernel reads side by side fall into different cache sets; what lies
/// past a row's end stays zero or finite.
struct Rows {
  float* data = nullptr;
  std::int64_t stride = 0;

  float* row(std::int64_t r) const noexcept { return data + r * stride; }
};

/// Rows of activations rounded for affine weights (see KernelTable::quantise), `stride` bytes
/// apart.
struct QuantisedRows {
  std::byte* data = nullptr;
  std::int64_t stride = 0;

  std::byte* row(std::int64_t r) const noexcept { return data + r * stride; }
};

/// Scratch of one worker.
struct WorkerScratch {
  float* matmul = nullptr;         // see kernels::matmul_scratch_floats
  float* row = nullptr;            // one normalised row, [model_dim]
  std::byte* quantised = nullptr;  // one row, as wide as any matrix
  float* q = nullptr;              // [kQueryRows][head_dim]
  float* scores = nullptr;         // [kQueryRows][kChunkKeys], rows `scores_stride` apart
  float* chunk_out = nullptr;      // [kQueryRows][v_stride]
  float* out = nullptr;            // [kQueryRows][v_stride]
  std::byte* narrow = nullptr;     // a key and a value in the cache's type
};

/// All scratch memory of a forward pass, sized once for passes of up to `max_rows` tokens.
class Activations {
 public:
  /// Query rows (heads of a group x tokens) that attention handles together.
  static constexpr std::int32_t kQueryRows = 32;
  /// Keys of one chunk of the online softmax: the grid is fixed, so results do not depend on who
  /// computes which chunk.
  static constexpr std::int32_t kChunkKeys = 256;
  static constexpr std::int64_t kScoresStride = kChunkKeys + 16;

  Activations(const ModelConfig& config, std::int32_t max_rows, std::int32_t max_context,
              int n_workers);

  std::int32_t max_rows() const noexcept { return max_rows_; }

  Rows x;                   // residual stream, [max_rows, model_dim]
  Rows normed;              // [max_rows, model_dim]
  Rows qkv;                 // [max_rows, largest qkv_rows]
  Rows attn;                // heads' outputs, [max_rows, largest n_heads * head_dim]
  Rows ffn;                 // [max_rows, largest ffn_dim]
  QuantisedRows quantised;  // [max_rows], as wide as any matrix

  const WorkerScratch& worker(int index) const noexcept {
    return workers_[static_cast<std::size_t>(index)];
  }

  /// Results of single chunks, for when one chunk is a work item of its own: partial i has
  /// kQueryRows rows of {max, sum, pad to 16, out[v_stride]}.
  float* partial(std::int64_t i) const noexcept { return partials_.data() + i * partial_floats_; }
  std::int64_t max_partials() const noexcept { return max_partials_; }
  std::int64_t partial_stride() const noexcept { return partial_floats_ / kQueryRows; }

 private:
  std::int32_t max_rows_;
  std::int64_t partial_floats_;
  std::int64_t max_partials_;
  AlignedArray<float> rows_;
  AlignedArray<float> scratch_;
  AlignedArray<float> partials_;
  std::vector<WorkerScratch> workers_;
};

}  // namespace openelm
