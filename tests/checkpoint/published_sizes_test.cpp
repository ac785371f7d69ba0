// The four published sizes, layer by layer, from Hugging Face's and from MLX's configuration.

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/hf_config.h"
#include "checkpoint/mlx_config.h"
#include "checkpoint/model_folder.h"
#include "checkpoint/tensor_layout.h"

namespace openelm::test {
namespace {

struct PublishedSize {
  std::string name;
  std::int32_t model_dim;
  std::int32_t head_dim;
  std::int64_t parameters;
  std::int64_t kv_values_per_token;
  std::vector<LayerConfig> layers;
  std::vector<std::int32_t> qkv_rows;
};

void PrintTo(const PublishedSize& size, std::ostream* out) { *out << size.name; }

std::vector<PublishedSize> published_sizes() {
  return {
      {"OpenELM-270M",
       1280,
       64,
       271527168,
       8064,
       {{12, 3, 768},
        {12, 3, 1024},
        {12, 3, 1280},
        {12, 3, 1536},
        {12, 3, 1792},
        {16, 4, 2048},
        {16, 4, 2560},
        {16, 4, 2816},
        {16, 4, 3072},
        {16, 4, 3328},
        {16, 4, 3584},
        {16, 4, 3840},
        {20, 5, 4352},
        {20, 5, 4608},
        {20, 5, 4864},
        {20, 5, 5120}},
       {1152, 1152, 1152, 1152, 1152, 1536, 1536, 1536, 1536, 1536, 1536, 1536, 1920, 1920, 1920,
        1920}},
      {"OpenELM-450M",
       1536,
       64,
       457179136,
       11648,
       {{12, 3, 768},  {12, 3, 1024}, {12, 3, 1280}, {16, 4, 1536}, {16, 4, 1792},
        {16, 4, 2304}, {16, 4, 2560}, {16, 4, 2816}, {16, 4, 3072}, {16, 4, 3328},
        {20, 5, 3584}, {20, 5, 3840}, {20, 5, 4096}, {20, 5, 4352}, {20, 5, 4608},
        {20, 5, 5120}, {24, 6, 5376}, {24, 6, 5632}, {24, 6, 5888}, {24, 6, 6144}},
       {1152, 1152, 1152, 1536, 1536, 1536, 1536, 1536, 1536, 1536,
        1920, 1920, 1920, 1920, 1920, 1920, 2304, 2304, 2304, 2304}},
      {"OpenELM-1_1B",
       2048,
       64,
       1079891456,
       21632,
       {{16, 4, 1024}, {16, 4, 1280}, {16, 4, 1536}, {20, 5, 1792}, {20, 5, 2048}, {20, 5, 2304},
        {20, 5, 2560}, {20, 5, 2816}, {20, 5, 3072}, {20, 5, 3328}, {24, 6, 3584}, {24, 6, 3840},
        {24, 6, 4096}, {24, 6, 4608}, {24, 6, 4608}, {24, 6, 5120}, {24, 6, 5376}, {24, 6, 5632},
        {28, 7, 5888}, {28, 7, 6144}, {28, 7, 6400}, {28, 7, 6656}, {28, 7, 6912}, {28, 7, 7168},
        {32, 8, 7424}, {32, 8, 7680}, {32, 8, 7936}, {32, 8, 8192}},
       {1536, 1536, 1536, 1920, 1920, 1920, 1920, 1920, 1920, 1920, 2304, 2304, 2304, 2304,
        2304, 2304, 2304, 2304, 2688, 2688, 2688, 2688, 2688, 2688, 3072, 3072, 3072, 3072}},
      {"OpenELM-3B",
       3072,
       128,
       3036647424,
       41984,
       {{12, 3, 1536},  {12, 3, 1792},  {12, 3, 2048},  {12, 3, 2560},  {16, 4, 2816},
        {16, 4, 3072},  {16, 4, 3328},  {16, 4, 3584},  {16, 4, 4096},  {16, 4, 4352},
        {16, 4, 4608},  {16, 4, 4864},  {16, 4, 5120},  {16, 4, 5632},  {16, 4, 5888},
        {16, 4, 6144},  {16, 4, 6400},  {16, 4, 6656},  {20, 5, 7168},  {20, 5, 7424},
        {20, 5, 7680},  {20, 5, 7936},  {20, 5, 8192},  {20, 5, 8704},  {20, 5, 8960},
        {20, 5, 9216},  {20, 5, 9472},  {20, 5, 9728},  {20, 5, 10240}, {20, 5, 10496},
        {24, 6, 10752}, {24, 6, 11008}, {24, 6, 11264}, {24, 6, 11776}, {24, 6, 12032},
        {24, 6, 12288}},
       {2304, 2304, 2304, 2304, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072,
        3072, 3072, 3072, 3072, 3072, 3072, 3840, 3840, 3840, 3840, 3840, 3840,
        3840, 3840, 3840, 3840, 3840, 3840, 4608, 4608, 4608, 4608, 4608, 4608}},
  };
}

/// The config.json of Apple's Hugging Face folder, with the multipliers as pairs.
OrderedJson hf_config(const PublishedSize& size) {
  OrderedJson config = {{"model_type", "openelm"},
                        {"vocab_size", 32000},
                        {"model_dim", size.model_dim},
                        {"head_dim", size.head_dim},
                        {"num_transformer_layers", size.layers.size()},
                        {"num_gqa_groups", 4},
                        {"qkv_multipliers", {0.5, 1.0}},
                        {"ffn_multipliers", {0.5, 4.0}},
                        {"ffn_dim_divisor", 256},
                        {"normalize_qk_projections", true},
                        {"share_input_output_layers", true}};
  for (const LayerConfig& layer : size.layers) {
    config["num_query_heads"].push_back(layer.n_heads);
    config["num_kv_heads"].push_back(layer.n_kv_heads);
  }
  return config;
}

class Published : public testing::TestWithParam<PublishedSize> {};

void expect_size(const ModelConfig& config, const PublishedSize& size) {
  EXPECT_EQ(config.model_dim, size.model_dim);
  EXPECT_EQ(config.head_dim, size.head_dim);
  EXPECT_EQ(config.vocab_size, 32000);
  EXPECT_EQ(config.max_context, 2048);
  EXPECT_EQ(config.layers, size.layers);
  EXPECT_EQ(config.parameter_count(), size.parameters);
  EXPECT_EQ(config.kv_values_per_token(), size.kv_values_per_token);
  ASSERT_EQ(config.layers.size(), size.qkv_rows.size());
  for (std::size_t l = 0; l < config.layers.size(); ++l) {
    EXPECT_EQ(config.qkv_rows(l), size.qkv_rows[l]) << "layer " << l;
  }
}

TEST_P(Published, HuggingFaceConfigGivesEveryLayer) {
  const nlohmann::json config = nlohmann::json::parse(hf_config(GetParam()).dump());
  expect_size(parse_hf_config(config, "config.json"), GetParam());
}

TEST_P(Published, MlxConfigGivesEveryLayer) {
  const nlohmann::json config = {
      {"model_name", GetParam().name}, {"vocab_size", 32128}, {"max_context_length", 2048}};
  ASSERT_TRUE(is_mlx_config(config));
  const ModelConfig parsed = parse_mlx_config(config, "config.json");
  expect_size(parsed, GetParam());
  EXPECT_EQ(parsed.name, GetParam().name);
  EXPECT_TRUE(parsed.qk_norm);
  EXPECT_TRUE(parsed.tied_head);
  EXPECT_TRUE(parsed.glu);
  EXPECT_EQ(parsed.norm_eps, 1e-6F);
  EXPECT_EQ(parsed.rope_base, 10000.0);
}

TEST_P(Published, TensorsAddUpToTheParameters) {
  const nlohmann::json object = nlohmann::json::parse(hf_config(GetParam()).dump());
  const ModelConfig config = parse_hf_config(object, "config.json");
  std::int64_t total = 0;
  for (const TensorSpec& spec : expected_tensors(config)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : spec.shape) count *= extent;
    total += count;
  }
  EXPECT_EQ(total, GetParam().parameters);
}

TEST_P(Published, AWrongHeadIsFound) {
  PublishedSize size = GetParam();
  size.layers[5].n_heads += 4;
  size.layers[5].n_kv_heads += 1;
  const nlohmann::json config = nlohmann::json::parse(hf_config(size).dump());
  const std::string error = message_of([&] { parse_hf_config(config, "config.json"); });
  EXPECT_NE(error.find("num_query_heads[5]"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Sizes, Published, testing::ValuesIn(published_sizes()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(ParameterCount, CountsWhatTheConfigurationHas) {
  ModelConfig config;
  config.vocab_size = 10;
  config.model_dim = 16;
  config.head_dim = 8;
  config.layers = {{4, 2, 24}, {2, 1, 5}};
  const std::int64_t first = 16 * (4 + 4) * 8 + 16 * 4 * 8 + 3 * 16 * 24 + 2 * 16 + 2 * 8;
  EXPECT_EQ(config.layer_parameter_count(0), first);
  EXPECT_EQ(config.parameter_count(), 160 + 16 + first + config.layer_parameter_count(1));
  config.tied_head = false;
  EXPECT_EQ(config.parameter_count(), 320 + 16 + first + config.layer_parameter_count(1));
  config.qk_norm = false;
  EXPECT_EQ(config.layer_parameter_count(0), first - 16);
  config.glu = false;
  EXPECT_EQ(config.layer_parameter_count(0), first - 16 - 16 * 24);
  EXPECT_EQ(config.kv_values_per_token(), 2 * 8 * (2 + 1));
}

TEST(Names, OfStorageTypes) {
  EXPECT_STREQ(to_string(WeightType::f32), "f32");
  EXPECT_STREQ(to_string(WeightType::f16), "f16");
  EXPECT_STREQ(to_string(WeightType::bf16), "bf16");
  EXPECT_STREQ(to_string(KvType::f32), "f32");
  EXPECT_STREQ(to_string(KvType::f16), "f16");
  EXPECT_STREQ(to_string(KvType::bf16), "bf16");
}

}  // namespace
}  // namespace openelm::test
