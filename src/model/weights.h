#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <openelm/config.h>
#include <openelm/quantization.h>

#include "base/aligned_buffer.h"
#include "checkpoint/tensor_source.h"
#include "parallel/thread_pool.h"
#include "quant/packed_matrix.h"

namespace openelm {

struct LayerWeights {
  const float* attn_norm = nullptr;  // [model_dim]
  PackedMatrix qkv;                  // [(n_heads + 2 n_kv_heads) head_dim, model_dim]
  const float* q_norm = nullptr;     // [head_dim], null without QK norm
  const float* k_norm = nullptr;     // [head_dim], null without QK norm
  PackedMatrix out;                  // [model_dim, n_heads head_dim]
  const float* ffn_norm = nullptr;   // [model_dim]
  PackedMatrix up;  // GLU: gate and up tiles in turn, [2 * (ffn_dim rounded up to 16), model_dim];
                    // without GLU: [ffn_dim, model_dim]
  PackedMatrix down;  // [model_dim, ffn_dim]
};

/// All weights, packed into tiles. The matrices are views into `matrix_storage`.
struct Weights {
  PackedMatrix embedding;  // [vocab_size, model_dim]
  PackedMatrix head;       // [vocab_size, model_dim]; the embedding itself when tied
  const float* final_norm = nullptr;
  std::vector<LayerWeights> layers;

  AlignedBuffer matrix_storage;
  AlignedArray<float> norm_storage;

  std::uint64_t bytes() const noexcept {
    return matrix_storage.size() + norm_storage.size() * sizeof(float);
  }
};

/// Bytes of weights done, bytes in all.
using LoadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Packs a checkpoint with all threads of `pool`; each tile is first written by the thread that
/// will read it. Pages of the source are given back as soon as they are packed. With `quantize`,
/// plain matrices are quantised on the way, to the same bits as in a folder that `quantize_folder`
/// writes. Throws Error when a tensor is missing, misshapen or cannot be quantised, or memory does
/// not suffice.
Weights load_weights(const Checkpoint& checkpoint, ThreadPool& pool, const LoadProgress& progress,
                     const std::optional<QuantizeOptions>& quantize = std::nullopt);

}  // namespace openelm
