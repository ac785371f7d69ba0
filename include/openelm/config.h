#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace openelm {

using TokenId = std::int32_t;

/// How a weight matrix is stored. Arithmetic is float32 whatever the storage.
enum class WeightType { f32, f16, bf16 };

/// How keys and values are stored in the cache.
enum class KvType { f32, f16, bf16 };

/// Bytes of one stored value.
constexpr std::size_t size_of(WeightType t) { return t == WeightType::f32 ? 4 : 2; }
constexpr std::size_t size_of(KvType t) { return t == KvType::f32 ? 4 : 2; }

/// "f32", "f16", "bf16".
const char* to_string(WeightType type) noexcept;
const char* to_string(KvType type) noexcept;

/// The sizes that differ from layer to layer under layer-wise scaling.
struct LayerConfig {
  std::int32_t n_heads = 0;     ///< query heads
  std::int32_t n_kv_heads = 0;  ///< key/value heads; n_heads is a multiple of it
  std::int32_t ffn_dim = 0;     ///< width of the SwiGLU hidden vector

  friend bool operator==(const LayerConfig&, const LayerConfig&) = default;
};

/// An OpenELM architecture. Nothing here assumes that two layers are alike.
struct ModelConfig {
  std::string name;              ///< for display: the folder's or the checkpoint's own name
  std::int32_t vocab_size = 0;   ///< rows of the embedding
  std::int32_t model_dim = 0;    ///< width of the residual stream
  std::int32_t head_dim = 0;     ///< width of one head, a multiple of 8
  std::int32_t max_context = 0;  ///< positions the model was trained for
  double rope_base = 10000.0;    ///< RoPE frequency base
  float norm_eps = 1e-6F;        ///< added to the mean of squares, inside the root
  bool qk_norm = true;           ///< RMSNorm of every query and key head before RoPE
  bool tied_head = true;         ///< logits use the embedding matrix
  bool glu = true;               ///< silu(gate) * up; false: silu(up) alone
  TokenId bos_id = 1;
  TokenId eos_id = 2;
  std::vector<LayerConfig> layers;

  /// Rows of layer `l`'s fused projection: query heads, then key heads, then value heads.
  std::int32_t qkv_rows(std::size_t l) const {
    return (layers[l].n_heads + 2 * layers[l].n_kv_heads) * head_dim;
  }

  /// Weights in all, a tied head counted once.
  std::int64_t parameter_count() const;

  /// Weights of layer `l` alone.
  std::int64_t layer_parameter_count(std::size_t l) const;

  /// Key and value numbers kept per position, over all layers.
  std::int64_t kv_values_per_token() const;
};

}  // namespace openelm
