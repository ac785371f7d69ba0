#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace openelm {

using TokenId = std::int32_t;

/// A type of stored numbers.
enum class WeightType { f32, f16, bf16 };

/// How plain bf16 weights are multiplied. exact: float32 activations, the same bits on every
/// machine. fast: activations rounded to bf16 and the CPU's own dot product of them, where it has
/// one that is faster; the same bits on that kind of CPU only.
enum class Compute { exact, fast };

/// How keys and values are stored in the cache; q8: signed bytes, with a float32 scale for each
/// head and position.
enum class KvType { f32, f16, bf16, q8 };

/// Bytes of one stored value.
constexpr std::size_t size_of(WeightType t) { return t == WeightType::f32 ? 4 : 2; }
constexpr std::size_t size_of(KvType t) { return t == KvType::q8 ? 1 : t == KvType::f32 ? 4 : 2; }

/// "f32", "f16", "bf16", "q8".
const char* to_string(WeightType type) noexcept;
const char* to_string(KvType type) noexcept;

/// How a weight matrix is stored: as plain numbers of `type`, or (bits > 0) in affine groups as MLX
/// has them: `group_size` consecutive weights of a row share a scale and a bias of `type`, and are
/// q * scale + bias with unsigned q of `bits` bits.
struct WeightFormat {
  WeightType type = WeightType::f32;
  std::int32_t bits = 0;        ///< 0, 4 or 8
  std::int32_t group_size = 0;  ///< 32, 64 or 128; 0 for plain numbers

  constexpr bool affine() const noexcept { return bits > 0; }

  /// Scales and biases counted in: 8.5 for 8 bits in groups of 64 with 16-bit scales.
  constexpr double bits_per_weight() const noexcept {
    const auto number = 8.0 * static_cast<double>(size_of(type));
    return affine() ? bits + 2.0 * number / group_size : number;
  }

  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

/// "bf16"; "q8_g64" for affine groups.
std::string to_string(const WeightFormat& format);

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

  /// Their bytes, scales included.
  std::int64_t kv_bytes_per_token(KvType type) const;
};

}  // namespace openelm
