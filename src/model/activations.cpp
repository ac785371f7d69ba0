#include "model/activations.h"

#include <algorithm>

#include "kernels/kernels.h"

namespace openelm {
namespace {

constexpr std::int64_t kLine = 16;  // floats of a cache line

std::int64_t round_up(std::int64_t n) { return (n + kLine - 1) / kLine * kLine; }
std::int64_t row_stride(std::int64_t n) { return round_up(n) + kLine; }

/// Floats that hold a quantised row of k values, whatever the kernels.
std::int64_t widest_quantised_row(std::int32_t k) {
  constexpr std::int64_t kValueBytes = 2;
  constexpr std::int64_t kSmallestBlock = 16;
  constexpr std::int64_t kBlockBytes = sizeof(kernels::QuantisedBlock);
  return (k * kValueBytes + k / kSmallestBlock * kBlockBytes) / std::int64_t{sizeof(float)};
}

/// Hands out consecutive, line-aligned parts of one allocation; with no memory yet it only counts.
class Carver {
 public:
  explicit Carver(float* memory) : memory_(memory) {}
  float* take(std::int64_t floats) {
    float* const part = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(floats);
    return part;
  }
  std::size_t used() const { return static_cast<std::size_t>(used_); }

 private:
  float* memory_;
  std::int64_t used_ = 0;
};

}  // namespace

Activations::Activations(const ModelConfig& config, std::int32_t max_rows, std::int32_t max_context,
                         int n_workers)
    : max_rows_(max_rows) {
  std::int32_t qkv_width = 0;
  std::int32_t attn_width = 0;
  std::int32_t ffn_width = 0;
  for (std::size_t l = 0; l < config.layers.size(); ++l) {
    qkv_width = std::max(qkv_width, config.qkv_rows(l));
    attn_width = std::max(attn_width, config.layers[l].n_heads * config.head_dim);
    ffn_width = std::max(ffn_width, config.layers[l].ffn_dim);
  }
  const std::int32_t widest = std::max({config.model_dim, attn_width, ffn_width});
  const std::int64_t quantised_floats = row_stride(widest_quantised_row(widest));
  const auto carve_rows = [&](float* memory) {
    Carver carver(memory);
    const auto take = [&](Rows& rows, std::int32_t width) {
      rows.stride = row_stride(width);
      rows.data = carver.take(rows.stride * max_rows);
    };
    take(x, config.model_dim);
    take(normed, config.model_dim);
    take(qkv, qkv_width);
    take(attn, attn_width);
    take(ffn, ffn_width);
    quantised.stride = quantised_floats * std::int64_t{sizeof(float)};
    quantised.data = reinterpret_cast<std::byte*>(carver.take(quantised_floats * max_rows));
    return carver.used();
  };
  rows_ = AlignedArray<float>(carve_rows(nullptr), "activations");
  carve_rows(rows_.data());

  const std::int64_t out_width = kernels::v_stride(config.head_dim);
  workers_.resize(static_cast<std::size_t>(n_workers));
  const auto carve_scratch = [&](float* memory) {
    Carver carver(memory);
    for (WorkerScratch& w : workers_) {
      w.matmul = carver.take(static_cast<std::int64_t>(kernels::matmul_scratch_floats(max_rows)));
      w.row = carver.take(row_stride(config.model_dim));
      w.quantised = reinterpret_cast<std::byte*>(carver.take(quantised_floats));
      w.q = carver.take(kQueryRows * config.head_dim);
      w.scores = carver.take(kQueryRows * kScoresStride);
      w.chunk_out = carver.take(kQueryRows * out_width);
      w.out = carver.take(kQueryRows * out_width);
      w.narrow = reinterpret_cast<std::byte*>(carver.take(2 * config.head_dim));
    }
    return carver.used();
  };
  scratch_ = AlignedArray<float>(carve_scratch(nullptr), "activations");
  carve_scratch(scratch_.data());

  // Single chunks become work items only while (tile, head) pairs are fewer than 4 a worker.
  const std::int64_t chunks = (max_context + kChunkKeys - 1) / kChunkKeys;
  partial_floats_ = kQueryRows * (kLine + out_width);
  max_partials_ = 4 * n_workers * chunks;
  partials_ = AlignedArray<float>(static_cast<std::size_t>(max_partials_ * partial_floats_),
                                  "attention partials");
}

}  // namespace openelm
