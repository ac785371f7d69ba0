#include <openelm/config.h>

namespace openelm {

const char* to_string(WeightType type) noexcept {
  switch (type) {
    case WeightType::f32:
      return "f32";
    case WeightType::f16:
      return "f16";
    case WeightType::bf16:
      return "bf16";
  }
  return "?";
}

const char* to_string(KvType type) noexcept {
  switch (type) {
    case KvType::f32:
      return "f32";
    case KvType::f16:
      return "f16";
    case KvType::bf16:
      return "bf16";
    case KvType::q8:
      return "q8";
  }
  return "?";
}

std::string to_string(const WeightFormat& format) {
  if (!format.affine()) return to_string(format.type);
  return "q" + std::to_string(format.bits) + "_g" + std::to_string(format.group_size);
}

std::int64_t ModelConfig::layer_parameter_count(std::size_t l) const {
  const std::int64_t dim = model_dim;
  const std::int64_t ffn_dim = layers[l].ffn_dim;
  const std::int64_t attention = dim * qkv_rows(l) + dim * layers[l].n_heads * head_dim;
  const std::int64_t ffn = dim * ffn_dim * (glu ? 3 : 2);
  const std::int64_t norms = 2 * dim + (qk_norm ? 2 * head_dim : 0);
  return attention + ffn + norms;
}

std::int64_t ModelConfig::parameter_count() const {
  const std::int64_t embedding = std::int64_t{vocab_size} * model_dim;
  std::int64_t total = embedding * (tied_head ? 1 : 2) + model_dim;
  for (std::size_t l = 0; l < layers.size(); ++l) total += layer_parameter_count(l);
  return total;
}

std::int64_t ModelConfig::kv_values_per_token() const {
  std::int64_t total = 0;
  for (const LayerConfig& layer : layers) total += std::int64_t{2} * layer.n_kv_heads * head_dim;
  return total;
}

std::int64_t ModelConfig::kv_bytes_per_token(KvType type) const {
  const std::int64_t values = kv_values_per_token();
  const auto bytes = values * static_cast<std::int64_t>(size_of(type));
  constexpr std::int64_t kScaleBytes = sizeof(float);
  return type == KvType::q8 ? bytes + values / head_dim * kScaleBytes : bytes;
}

}  // namespace openelm
