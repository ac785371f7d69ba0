#include "checkpoint/tensor_layout.h"

namespace openelm {

std::vector<TensorSpec> expected_tensors(const ModelConfig& config) {
  const std::int64_t dim = config.model_dim;
  const std::int64_t head_dim = config.head_dim;
  const std::int64_t vocab = config.vocab_size;
  std::vector<TensorSpec> specs;
  specs.push_back({"token_embeddings.weight", {vocab, dim}});
  for (std::size_t l = 0; l < config.layers.size(); ++l) {
    const LayerConfig& layer = config.layers[l];
    const std::int64_t ffn_dim = layer.ffn_dim;
    const std::string prefix = "layers." + std::to_string(l) + ".";
    specs.push_back({prefix + "attn.qkv_proj.weight", {config.qkv_rows(l), dim}});
    if (config.qk_norm) {
      specs.push_back({prefix + "attn.q_norm.weight", {head_dim}});
      specs.push_back({prefix + "attn.k_norm.weight", {head_dim}});
    }
    specs.push_back({prefix + "attn.out_proj.weight", {dim, layer.n_heads * head_dim}});
    specs.push_back({prefix + "ffn.proj_1.weight", {config.glu ? 2 * ffn_dim : ffn_dim, dim}});
    specs.push_back({prefix + "ffn.proj_2.weight", {dim, ffn_dim}});
    specs.push_back({prefix + "attn_norm.weight", {dim}});
    specs.push_back({prefix + "ffn_norm.weight", {dim}});
  }
  specs.push_back({"norm.weight", {dim}});
  if (!config.tied_head) specs.push_back({"lm_head.weight", {vocab, dim}});
  return specs;
}

std::string canonical_name(std::string_view spelled) {
  constexpr std::string_view kPrefix = "transformer.";
  if (spelled.starts_with(kPrefix)) spelled.remove_prefix(kPrefix.size());
  constexpr std::string_view kCoreNetHead = "classifier.";
  if (!spelled.starts_with(kCoreNetHead)) return std::string(spelled);
  return "lm_head." + std::string(spelled.substr(kCoreNetHead.size()));
}

}  // namespace openelm
