#include "checkpoint/hf_config.h"

#include <string>
#include <vector>

#include "checkpoint/config_limits.h"
#include "checkpoint/json_fields.h"
#include "checkpoint/layer_scaling.h"
#include "checkpoint/message_text.h"

namespace openelm {
namespace {

/// Refuses what would compute another function than the one this engine has.
void check_kind(const JsonFields& fields) {
  const std::string type = fields.text_or("model_type", "");
  if (type.empty()) fields.fail("model_type", "is missing, expected \"openelm\"");
  if (type != "openelm")
    fields.fail("model_type", "is " + in_quotes(type) + ", expected \"openelm\"");

  const std::string activation = fields.text_or("activation_fn_name", "swish");
  if (activation != "swish" && activation != "silu") {
    fields.fail("activation_fn_name",
                "is " + in_quotes(activation) + ", supported are \"swish\" and \"silu\"");
  }
  const std::string norm = fields.text_or("normalization_layer_name", "rms_norm");
  if (norm != "rms_norm") {
    fields.fail("normalization_layer_name",
                "is " + in_quotes(norm) + ", supported is \"rms_norm\"");
  }
}

/// One multiplier per layer: a number stands for all layers, a pair is spread over them, and a list
/// of one per layer is taken as it is.
std::vector<double> read_multipliers(const JsonFields& fields, const char* field,
                                     std::size_t n_layers) {
  const std::vector<double> given = fields.numbers(field, 0.0, limits::kLargestMultiplier);
  if (!fields.is_list(field)) return std::vector(n_layers, given[0]);
  if (given.size() == 2) return spread_multipliers(given[0], given[1], n_layers);
  if (given.size() == n_layers) return given;
  fields.fail(field, "must be a number, a pair, or a list of one for each of the " +
                         std::to_string(n_layers) + " layers, found a list of " +
                         std::to_string(given.size()));
}

std::string at(const char* field, std::size_t l) {
  return std::string(field) + "[" + std::to_string(l) + "]";
}

void check_derived(const JsonFields& fields, const char* field, std::size_t l, std::int32_t given,
                   std::int64_t derived) {
  if (given == derived) return;
  fields.fail(at(field, l), "is " + std::to_string(given) + ", but the multipliers give " +
                                std::to_string(derived));
}

/// Heads per layer as listed; the multipliers, where present, must lead to the same.
void read_heads(const JsonFields& fields, ModelConfig& config) {
  const std::size_t n_layers = config.layers.size();
  const auto heads = fields.wholes("num_query_heads", limits::kHeads, n_layers);
  const auto kv_heads = fields.wholes("num_kv_heads", limits::kHeads, n_layers);
  const std::int32_t groups = fields.whole_or("num_gqa_groups", limits::kHeads, 0);
  std::vector<double> multipliers;
  if (fields.has("qkv_multipliers")) {
    multipliers = read_multipliers(fields, "qkv_multipliers", n_layers);
  }
  for (std::size_t l = 0; l < n_layers; ++l) {
    if (heads[l] % kv_heads[l] != 0) {
      fields.fail(at("num_query_heads", l), "is " + std::to_string(heads[l]) +
                                                ", not a multiple of num_kv_heads, which is " +
                                                std::to_string(kv_heads[l]));
    }
    if (!multipliers.empty() && groups > 0) {
      const std::int64_t derived =
          scaled_heads(config.model_dim, multipliers[l], config.head_dim, groups);
      check_derived(fields, "num_query_heads", l, heads[l], derived);
      check_derived(fields, "num_kv_heads", l, kv_heads[l], derived / groups);
    }
    if (std::int64_t{heads[l]} * config.head_dim > limits::kWidest) {
      fields.fail(at("num_query_heads", l), "is " + std::to_string(heads[l]) + ", too many");
    }
    config.layers[l].n_heads = heads[l];
    config.layers[l].n_kv_heads = kv_heads[l];
  }
}

void read_ffn_widths(const JsonFields& fields, ModelConfig& config) {
  const auto multipliers = read_multipliers(fields, "ffn_multipliers", config.layers.size());
  const std::int32_t divisor = fields.whole("ffn_dim_divisor", limits::kWidth);
  for (std::size_t l = 0; l < multipliers.size(); ++l) {
    const std::int64_t width = make_divisible(multipliers[l] * config.model_dim, divisor);
    if (width > limits::kWidest) {
      fields.fail("ffn_multipliers", "give layer " + std::to_string(l) + " a width of " +
                                         std::to_string(width) + ", too large");
    }
    config.layers[l].ffn_dim = static_cast<std::int32_t>(width);
  }
}

}  // namespace

ModelConfig parse_hf_config(const nlohmann::json& object, const std::filesystem::path& file) {
  const JsonFields fields(file, object);
  check_kind(fields);
  ModelConfig config;
  config.vocab_size = fields.whole("vocab_size", limits::kVocabulary);
  config.model_dim = fields.whole("model_dim", limits::kWidth);
  config.head_dim = fields.whole("head_dim", limits::kHeadDim);
  if (config.head_dim % 8 != 0) {
    fields.fail("head_dim", "is " + std::to_string(config.head_dim) + ", must be a multiple of 8");
  }
  config.max_context = fields.whole_or("max_context_length", limits::kContext, 2048);
  config.rope_base = fields.number_or("rope_freq_constant", 1.0, 1e12, 10000.0);
  config.norm_eps = static_cast<float>(fields.number_or("rms_norm_eps", 1e-12, 0.1, 1e-6));
  config.glu = fields.flag_or("ffn_with_glu", true);
  // Off unless stated, as in Apple's own configuration class; a checkpoint that disagrees is
  // refused when its tensors are looked at.
  config.qk_norm = fields.flag_or("normalize_qk_projections", false);
  config.tied_head = fields.flag_or("share_input_output_layers", false);
  const JsonFields::Range token{0, config.vocab_size - 1};
  config.bos_id = fields.first_whole_or("bos_token_id", token, 1);
  config.eos_id = fields.first_whole_or("eos_token_id", token, 2);

  const std::int32_t n_layers = fields.whole("num_transformer_layers", limits::kLayers);
  config.layers.resize(static_cast<std::size_t>(n_layers));
  read_heads(fields, config);
  read_ffn_widths(fields, config);
  return config;
}

}  // namespace openelm
