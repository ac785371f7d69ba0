// config.json: what is read, what is refused, and with which words.

#include "checkpoint/hf_config.h"

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/json_text.h"
#include "checkpoint/model_folder.h"

namespace openelm::test {
namespace {

OrderedJson tiny_config() { return ModelFolder::load().config; }

ModelConfig parse(const std::string& text) {
  return parse_hf_config(parse_python_json(text, "config.json"), "config.json");
}

ModelConfig parse(const OrderedJson& config) { return parse(config.dump()); }

std::string message(const OrderedJson& config) {
  return message_of([&] { parse(config); });
}

TEST(HfConfig, ReadsEveryField) {
  OrderedJson config = tiny_config();
  config["max_context_length"] = 777;
  config["rope_freq_constant"] = 12345.5;
  config["rms_norm_eps"] = 1e-5;
  config["bos_token_id"] = 7;
  config["eos_token_id"] = {9, 2};
  const ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.vocab_size, 311);
  EXPECT_EQ(parsed.model_dim, 112);
  EXPECT_EQ(parsed.head_dim, 64);
  EXPECT_EQ(parsed.max_context, 777);
  EXPECT_EQ(parsed.rope_base, 12345.5);
  EXPECT_EQ(parsed.norm_eps, 1e-5F);
  EXPECT_TRUE(parsed.qk_norm);
  EXPECT_TRUE(parsed.tied_head);
  EXPECT_TRUE(parsed.glu);
  EXPECT_EQ(parsed.bos_id, 7);
  EXPECT_EQ(parsed.eos_id, 9);
  const std::vector<LayerConfig> layers = {{4, 1, 80}, {8, 2, 120}, {12, 3, 180}, {12, 3, 240}};
  EXPECT_EQ(parsed.layers, layers);
}

TEST(HfConfig, DefaultsAreThoseOfApplesConfigurationClass) {
  OrderedJson config = tiny_config();
  for (const char* field :
       {"max_context_length", "rope_freq_constant", "bos_token_id", "ffn_with_glu", "eos_token_id",
        "normalize_qk_projections", "share_input_output_layers", "activation_fn_name",
        "normalization_layer_name", "rope_max_length"}) {
    config.erase(field);
  }
  const ModelConfig parsed = parse(config);
  EXPECT_EQ(parsed.max_context, 2048);
  EXPECT_EQ(parsed.rope_base, 10000.0);
  EXPECT_EQ(parsed.norm_eps, 1e-6F);
  EXPECT_EQ(parsed.bos_id, 1);
  EXPECT_EQ(parsed.eos_id, 2);
  EXPECT_TRUE(parsed.glu);
  EXPECT_FALSE(parsed.qk_norm);
  EXPECT_FALSE(parsed.tied_head);
}

TEST(HfConfig, NullCountsAsAbsent) {
  OrderedJson config = tiny_config();
  config["bos_token_id"] = nullptr;
  config["rope_freq_constant"] = nullptr;
  EXPECT_EQ(parse(config).bos_id, 1);
  EXPECT_EQ(parse(config).rope_base, 10000.0);
  config["head_dim"] = nullptr;
  EXPECT_NE(message(config).find("\"head_dim\" is missing"), std::string::npos);
}

TEST(HfConfig, SiluIsSwishByAnotherName) {
  OrderedJson config = tiny_config();
  config["activation_fn_name"] = "silu";
  EXPECT_NO_THROW(parse(config));
}

TEST(HfConfig, FfnMultipliersMayBeOneNumberOrOnePerLayer) {
  OrderedJson config = tiny_config();
  config["ffn_multipliers"] = 1.3;
  for (const LayerConfig& layer : parse(config).layers) EXPECT_EQ(layer.ffn_dim, 140);
  config["ffn_multipliers"] = {0.6, 1.1, 1.6, 2.1};
  EXPECT_EQ(parse(config).layers[1].ffn_dim, 120);
  EXPECT_EQ(parse(config).layers[3].ffn_dim, 240);
  config["ffn_multipliers"] = {0.6, 2.1};
  EXPECT_EQ(parse(config).layers[1].ffn_dim, 120);
  EXPECT_EQ(parse(config).layers[3].ffn_dim, 240);
}

TEST(HfConfig, QkvMultipliersMayBeOneNumberOrOnePerLayer) {
  OrderedJson config = tiny_config();
  config["qkv_multipliers"] = {2.2, 3.77, 5.33, 6.9};
  EXPECT_EQ(parse(config).layers, parse(tiny_config()).layers);
  config["qkv_multipliers"] = 4.6;
  config["num_query_heads"] = {8, 8, 8, 8};
  config["num_kv_heads"] = {2, 2, 2, 2};
  EXPECT_EQ(parse(config).layers[3].n_heads, 8);
}

TEST(HfConfig, ASingleNumberIsNotRoundedAndAPairIs) {
  OrderedJson config = tiny_config();
  // 112 * 1.0049 = 112.55, which rounds to 113 with divisor 1; with 1.00 it is 112.
  config["ffn_dim_divisor"] = 1;
  config["ffn_multipliers"] = 1.0049;
  EXPECT_EQ(parse(config).layers[0].ffn_dim, 113);
  config["ffn_multipliers"] = {1.0049, 1.0049};
  EXPECT_EQ(parse(config).layers[0].ffn_dim, 112);
  config["ffn_multipliers"] = {1.0049, 1.0049, 1.0049, 1.0049};
  EXPECT_EQ(parse(config).layers[0].ffn_dim, 113);
}

TEST(HfConfig, WithoutMultipliersTheListsStandAlone) {
  OrderedJson config = tiny_config();
  config.erase("qkv_multipliers");
  config["num_query_heads"] = {6, 4, 9, 3};
  config["num_kv_heads"] = {2, 4, 1, 3};
  EXPECT_EQ(parse(config).layers[2].n_heads, 9);
  EXPECT_EQ(parse(config).layers[2].n_kv_heads, 1);
  config["num_kv_heads"] = {4, 4, 1, 3};
  const std::string error = message(config);
  EXPECT_NE(error.find("\"num_query_heads[0]\" is 6, not a multiple of num_kv_heads, which is 4"),
            std::string::npos)
      << error;
}

TEST(HfConfig, WithoutGroupsTheListsStandAlone) {
  OrderedJson config = tiny_config();
  config["num_gqa_groups"] = nullptr;
  EXPECT_EQ(parse(config).layers, parse(tiny_config()).layers);
}

TEST(HfConfig, WidthsOfALayerAreBounded) {
  OrderedJson config = tiny_config();
  config.erase("qkv_multipliers");
  config["num_query_heads"] = {4, 65536, 12, 12};
  config["num_kv_heads"] = {1, 1, 3, 3};
  config["head_dim"] = 128;
  const std::string heads = message(config);
  EXPECT_NE(heads.find("\"num_query_heads[1]\" is 65536, too many"), std::string::npos) << heads;

  config["num_query_heads"] = {4, 8, 12, 12};
  config["model_dim"] = 1'000'000;
  config["ffn_multipliers"] = {1.0, 4.0, 5.0, 6.0};
  const std::string ffn = message(config);
  EXPECT_NE(ffn.find("\"ffn_multipliers\" give layer 2 a width of 5000000, too large"),
            std::string::npos)
      << ffn;
}

struct Variant {
  std::string name;
  std::function<void(OrderedJson& config)> change;
  std::vector<std::string> words;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

std::vector<Variant> missing_fields() {
  std::vector<Variant> variants;
  for (const char* field :
       {"ffn_multipliers", "num_query_heads", "num_kv_heads", "head_dim", "model_dim", "vocab_size",
        "num_transformer_layers", "ffn_dim_divisor", "model_type"}) {
    variants.push_back({field,
                        [=](OrderedJson& config) { config.erase(field); },
                        {"\"" + std::string(field) + "\" is missing"}});
  }
  return variants;
}

/// One field given another value; the message must name it and hold `words`.
Variant with(const std::string& name, const char* field, const OrderedJson& value,
             std::vector<std::string> words) {
  words.push_back("\"" + std::string(field));
  return {name, [=](OrderedJson& config) { config[field] = value; }, words};
}

std::vector<Variant> wrong_values() {
  return {
      with("short_list", "num_query_heads", {4, 8, 12}, {"each of the 4 layers", "found 3"}),
      with("long_list", "num_kv_heads", {1, 2, 3, 3, 3}, {"each of the 4 layers", "found 5"}),
      with("heads_not_derived", "num_query_heads", {3, 8, 12, 12}, {"[0]\" is 3", "give 4"}),
      with("kv_heads_not_derived", "num_kv_heads", {1, 4, 3, 3}, {"[1]\" is 4", "give 2"}),
      with("zero_kv_heads", "num_kv_heads", {0, 2, 3, 3}, {"[0]", "from 1", "found 0"}),
      with("zero_heads", "num_query_heads", {4, 8, 0, 12}, {"[2]", "from 1", "found 0"}),
      with("fractional_heads", "num_query_heads", {4.5, 8, 12, 12}, {"[0]", "whole", "4.5"}),
      with("heads_as_object", "num_query_heads", OrderedJson::object(), {"found an object"}),
      with("huge_vocab", "vocab_size", 1'000'000'000'000, {"4194304", "1000000000000"}),
      with("vocab_past_64_bits", "vocab_size", 1e30, {"whole number", "1e+30"}),
      with("vocab_past_63_bits", "vocab_size", UINT64_MAX, {"18446744073709551615"}),
      with("zero_vocab", "vocab_size", 0, {"found 0"}),
      with("huge_layers", "num_transformer_layers", 1'000'000'000, {"10000", "1000000000"}),
      with("zero_layers", "num_transformer_layers", 0, {"from 1"}),
      with("negative_dim", "model_dim", -112, {"-112"}),
      with("huge_dim", "model_dim", 1 << 30, {"1048576"}),
      with("odd_head_dim", "head_dim", 65, {"65", "multiple of 8"}),
      with("head_dim_of_four", "head_dim", 4, {"from 8"}),
      with("text_for_number", "head_dim", "64", {"whole number", "found \"64\""}),
      with("flag_for_number", "head_dim", true, {"whole number", "found true"}),
      with("list_for_number", "model_dim", {112}, {"found a list of 1"}),
      with("zero_context", "max_context_length", 0, {"from 1", "found 0"}),
      with("other_model", "model_type", "llama", {"is \"llama\"", "expected \"openelm\""}),
      with("number_for_text", "model_type", 3, {"must be a string", "found 3"}),
      with("other_activation", "activation_fn_name", "gelu", {"\"gelu\"", "\"swish\""}),
      with("other_norm", "normalization_layer_name", "layer_norm", {"layer_norm", "rms_norm"}),
      with("zero_divisor", "ffn_dim_divisor", 0, {"from 1", "found 0"}),
      with("number_for_flag", "ffn_with_glu", 1, {"true or false", "found 1"}),
      with("text_for_flag", "share_input_output_layers", "yes", {"true or false"}),
      with("zero_groups", "num_gqa_groups", 0, {"from 1", "found 0"}),
      {"other_groups",
       [](OrderedJson& config) { config["num_gqa_groups"] = 2; },
       {"\"num_kv_heads[0]\" is 1", "the multipliers give 2"}},
      with("negative_multiplier", "ffn_multipliers", {-1.0, 2.0}, {"[0]", "found -1"}),
      with("huge_multiplier", "ffn_multipliers", 1e9, {"found 1"}),
      with("three_multipliers", "ffn_multipliers", {1.0, 2.0, 3.0}, {"4 layers", "list of 3"}),
      with("no_multipliers", "ffn_multipliers", OrderedJson::array(), {"list of 0"}),
      with("text_multiplier", "qkv_multipliers", "big", {"must be a number"}),
      with("zero_rope_base", "rope_freq_constant", 0, {"must be a number from 1"}),
      with("zero_eps", "rms_norm_eps", 0.0, {"must be a number"}),
      with("bos_past_vocab", "bos_token_id", 311, {"to 310", "found 311"}),
      with("eos_negative", "eos_token_id", -1, {"from 0", "found -1"}),
      with("eos_empty_list", "eos_token_id", OrderedJson::array(), {"empty list"}),
  };
}

class ConfigVariant : public testing::TestWithParam<Variant> {};

TEST_P(ConfigVariant, IsRefused) {
  ModelFolder model = ModelFolder::load();
  GetParam().change(model.config);
  const TempFolder folder;
  model.write(folder.path());
  std::vector<std::string> words = GetParam().words;
  words.push_back((folder / "config.json").string() + ": ");
  expect_error(folder.path(), words);
}

std::string name_of(const testing::TestParamInfo<Variant>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Missing, ConfigVariant, testing::ValuesIn(missing_fields()), name_of);
INSTANTIATE_TEST_SUITE_P(Wrong, ConfigVariant, testing::ValuesIn(wrong_values()), name_of);

TEST(ConfigAgainstTensors, UntiedNeedsAHead) {
  ModelFolder model = ModelFolder::load();
  model.config["share_input_output_layers"] = false;
  const TempFolder folder;
  model.write(folder.path());
  expect_error(folder.path(), {"lm_head.weight", "[311, 112]", "missing", "model.safetensors",
                               "share_input_output_layers"});
}

TEST(ConfigAgainstTensors, NormsWithoutTheSwitchAreRefused) {
  ModelFolder model = ModelFolder::load();
  model.config["normalize_qk_projections"] = false;
  const TempFolder folder;
  model.write(folder.path());
  expect_error(folder.path(), {"k_norm.weight", "normalize_qk_projections", "model.safetensors"});
}

TEST(ConfigAgainstTensors, SwitchWithoutTheNormsIsRefused) {
  ModelFolder model = ModelFolder::load("tiny-mha");
  model.config["normalize_qk_projections"] = true;
  const TempFolder folder;
  model.write(folder.path());
  expect_error(folder.path(), {"layers.0.attn.q_norm.weight", "[80]", "missing"});
}

TEST(ConfigAgainstTensors, ShapesFromMultipliersMustBeTheTensors) {
  ModelFolder model = ModelFolder::load();
  model.config["ffn_multipliers"] = {0.6, 1.1, 1.6, 2.3};
  const TempFolder folder;
  model.write(folder.path());
  expect_error(folder.path(), {"layers.3.ffn.proj_1.weight", "[480, 112]", "[520, 112]"});
}

TEST(ConfigAgainstTensors, WithoutGluProjectionIsSingle) {
  ModelFolder model = ModelFolder::load();
  model.config["ffn_with_glu"] = false;
  const TempFolder folder;
  model.write(folder.path());
  expect_error(folder.path(), {"layers.0.ffn.proj_1.weight", "[160, 112]", "[80, 112]"});
}

}  // namespace
}  // namespace openelm::test
