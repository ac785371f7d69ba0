#include "checkpoint/mlx_config.h"

#include <algorithm>
#include <array>
#include <string>

#include "checkpoint/config_limits.h"
#include "checkpoint/json_fields.h"
#include "checkpoint/layer_scaling.h"
#include "checkpoint/message_text.h"

namespace openelm {
namespace {

struct NamedSize {
  const char* name;
  std::size_t n_layers;
  std::int32_t model_dim;
  std::int32_t head_dim;
};

constexpr std::array<NamedSize, 4> kSizes = {{
    {"OpenELM-270M", 16, 1280, 64},
    {"OpenELM-450M", 20, 1536, 64},
    {"OpenELM-1_1B", 28, 2048, 64},
    {"OpenELM-3B", 36, 3072, 128},
}};

// What the four sizes share.
constexpr std::int32_t kGqaGroups = 4;
constexpr std::int32_t kFfnDivisor = 256;

// Apple trains with 32128 embedding rows: the tokenizer's 32000, a padding token and filling. The
// rows past the tokenizer's are never tokens, and Apple's Hugging Face checkpoints lack them.
constexpr std::int32_t kTokenizerSize = 32000;

const NamedSize& find_size(const JsonFields& fields) {
  const std::string name = fields.text_or("model_name", "");
  const auto size =
      std::ranges::find_if(kSizes, [&](const NamedSize& s) { return name == s.name; });
  if (size == kSizes.end()) {
    fields.fail("model_name",
                "is " + in_quotes(name) +
                    ", known are OpenELM-270M, OpenELM-450M, OpenELM-1_1B and OpenELM-3B");
  }
  return *size;
}

}  // namespace

bool is_mlx_config(const nlohmann::json& config) {
  return config.contains("model_name") && !config.contains("model_type");
}

ModelConfig parse_mlx_config(const nlohmann::json& object, const std::filesystem::path& file) {
  const JsonFields fields(file, object);
  const NamedSize& size = find_size(fields);
  ModelConfig config;
  config.name = size.name;
  config.vocab_size = std::min(fields.whole("vocab_size", limits::kVocabulary), kTokenizerSize);
  config.max_context = fields.whole("max_context_length", limits::kContext);
  config.model_dim = size.model_dim;
  config.head_dim = size.head_dim;
  const auto qkv_multipliers = spread_multipliers(0.5, 1.0, size.n_layers);
  const auto ffn_multipliers = spread_multipliers(0.5, 4.0, size.n_layers);
  for (std::size_t l = 0; l < size.n_layers; ++l) {
    const auto heads = static_cast<std::int32_t>(
        scaled_heads(size.model_dim, qkv_multipliers[l], size.head_dim, kGqaGroups));
    const auto ffn_dim =
        static_cast<std::int32_t>(make_divisible(ffn_multipliers[l] * size.model_dim, kFfnDivisor));
    config.layers.push_back({heads, heads / kGqaGroups, ffn_dim});
  }
  return config;
}

}  // namespace openelm
