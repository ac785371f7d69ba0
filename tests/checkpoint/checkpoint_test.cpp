// What a sound checkpoint gives: canonical names, views of the right bytes, warnings.

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/model_folder.h"
#include "checkpoint/tensor_layout.h"

namespace openelm::test {
namespace {

using Shape = std::vector<std::int64_t>;

std::string bytes_of(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

class SoundCheckpoint : public testing::TestWithParam<const char*> {};

TEST_P(SoundCheckpoint, HoldsExactlyTheTensorsOfItsArchitecture) {
  const auto folder = std::filesystem::path(OPENELM_TEST_DATA) / "ckpt" / GetParam();
  const Checkpoint checkpoint = open_checkpoint(folder);
  EXPECT_TRUE(checkpoint.warnings.empty());
  EXPECT_EQ(checkpoint.config.name, GetParam());
  const auto specs = expected_tensors(checkpoint.config);
  EXPECT_EQ(checkpoint.tensors.all().size(), specs.size());
  std::int64_t count = 0;
  for (const TensorSpec& spec : specs) {
    const TensorView& tensor = checkpoint.tensors.require(spec.name, spec.shape);
    EXPECT_EQ(canonical_name(tensor.name), spec.name);
    count += static_cast<std::int64_t>(tensor.bytes() / size_of(tensor.format.type));
  }
  EXPECT_EQ(count, checkpoint.config.parameter_count());
}

INSTANTIATE_TEST_SUITE_P(Tiny, SoundCheckpoint,
                         testing::Values("tiny-gqa4", "tiny-mha", "tiny-mqa", "tiny-text"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

class Opened : public testing::Test {
 protected:
  Checkpoint open(const std::string& weights_name = "model.safetensors") {
    model_.write(folder_.path(), weights_name);
    return open_checkpoint(folder_.path());
  }

  ModelFolder model_ = ModelFolder::load();
  TempFolder folder_;
};

TEST_F(Opened, ViewsShowTheBytesOfTheFile) {
  const Checkpoint checkpoint = open();
  for (const auto& [name, tensor] : checkpoint.tensors.all()) {
    EXPECT_EQ(bytes_of(tensor), model_.weights.subset({tensor.name}).data) << name;
    EXPECT_EQ(tensor.format, WeightFormat{WeightType::bf16});
  }
}

TEST_F(Opened, ReleasedTensorsCanBeReadAgain) {
  const Checkpoint checkpoint = open();
  for (const auto& entry : checkpoint.tensors.all()) checkpoint.tensors.release(entry.second);
  const auto& embedding = checkpoint.tensors.require("token_embeddings.weight", Shape{311, 112});
  EXPECT_EQ(bytes_of(embedding), model_.weights.subset({embedding.name}).data);
}

TEST_F(Opened, RequireNamesWhatIsWrong) {
  const Checkpoint checkpoint = open();
  const TensorSource& tensors = checkpoint.tensors;
  EXPECT_TRUE(tensors.has("norm.weight"));
  EXPECT_FALSE(tensors.has("transformer.norm.weight"));
  EXPECT_FALSE(tensors.has("lm_head.weight"));
  const std::string absent = message_of([&] { tensors.require("nothing", Shape{3, 5}); });
  EXPECT_NE(absent.find("tensor \"nothing\" of shape [3, 5] is missing"), std::string::npos);
  const std::string shape = message_of([&] { tensors.require("norm.weight", Shape{113}); });
  EXPECT_NE(shape.find("model.safetensors: tensor \"transformer.norm.weight\" has shape [112], "
                       "the configuration needs [113]"),
            std::string::npos)
      << shape;
}

TEST_F(Opened, TensorSourceCanBeMoved) {
  Checkpoint checkpoint = open();
  const TensorSource moved = std::move(checkpoint.tensors);
  const auto& norm = moved.require("norm.weight", Shape{112});
  EXPECT_EQ(bytes_of(norm), model_.weights.subset({"transformer.norm.weight"}).data);
}

TEST_F(Opened, EmptyExtraTensorIsIgnoredWithAWarning) {
  model_.weights.append("extra.empty", "BF16", {0}, 0);
  const Checkpoint checkpoint = open();
  ASSERT_EQ(checkpoint.warnings.size(), 1U);
  EXPECT_NE(checkpoint.warnings[0].find("1 tensor is not part of the model"), std::string::npos);
  EXPECT_NE(checkpoint.warnings[0].find("\"extra.empty\""), std::string::npos);
  EXPECT_FALSE(checkpoint.tensors.has("extra.empty"));
}

TEST_F(Opened, UnusedTensorsMayHaveAnyType) {
  model_.weights.append("extra.a", "I64", {3}, 24);
  model_.weights.append("extra.b", "F8_E4M3", {3}, 3);
  model_.weights.append("extra.c", "SOME_NEW_TYPE", {16}, 5);
  const Checkpoint checkpoint = open();
  ASSERT_EQ(checkpoint.warnings.size(), 1U);
  EXPECT_NE(checkpoint.warnings[0].find("3 tensors are not part"), std::string::npos);
}

TEST_F(Opened, HeadOfATiedModelIsNeverUsed) {
  for (const char* name : {"lm_head.weight", "classifier.weight"}) {
    model_ = ModelFolder::load();
    model_.weights.append(name, "BF16", {311, 112}, 311 * 112 * 2);
    const Checkpoint checkpoint = open();
    ASSERT_EQ(checkpoint.warnings.size(), 1U);
    EXPECT_NE(checkpoint.warnings[0].find("\"" + std::string(name) + "\" is not used"),
              std::string::npos);
    EXPECT_FALSE(checkpoint.tensors.has("lm_head.weight"));
  }
}

TEST_F(Opened, CoreNetNamesAndFileWorkWithAHuggingFaceConfig) {
  model_ = ModelFolder::load("tiny-mha");
  Safetensors renamed{OrderedJson::object(), model_.weights.data};
  for (const std::string& name : model_.weights.names()) {
    std::string core = canonical_name(name);
    if (core == "lm_head.weight") core = "classifier.weight";
    renamed.header[core] = model_.weights.header[name];
  }
  model_.weights = renamed;
  const Checkpoint checkpoint = open("weights.safetensors");
  EXPECT_TRUE(checkpoint.warnings.empty());
  EXPECT_EQ(checkpoint.tensors.require("lm_head.weight", Shape{257, 96}).name, "classifier.weight");
}

TEST_F(Opened, PaddingRowsOfTheVocabularyAreDropped) {
  model_.config["vocab_size"] = 300;
  const Checkpoint checkpoint = open();
  const auto& embedding = checkpoint.tensors.require("token_embeddings.weight", Shape{300, 112});
  EXPECT_EQ(bytes_of(embedding),
            model_.weights.subset({embedding.name}).data.substr(0, 300 * 112 * 2));
  ASSERT_EQ(checkpoint.warnings.size(), 1U);
  EXPECT_NE(checkpoint.warnings[0].find("311 rows for a vocabulary of 300"), std::string::npos);
}

TEST_F(Opened, TooFewRowsOfTheVocabularyAreRefused) {
  model_.config["vocab_size"] = 312;
  model_.write(folder_.path());
  expect_error(folder_.path(), {"token_embeddings.weight", "[311, 112]", "[312, 112]"});
}

TEST_F(Opened, TypesMayDifferFromTensorToTensor) {
  const std::string name = "transformer.norm.weight";
  Safetensors changed = model_.weights.subset({"transformer.token_embeddings.weight"});
  for (const std::string& other : model_.weights.names()) {
    if (other == name || changed.header.contains(other)) continue;
    const Safetensors one = model_.weights.subset({other});
    changed.append(other, "BF16", one.header[other]["shape"].get<Shape>(), one.data.size());
  }
  changed.append(name, "F32", {112}, 448);
  model_.weights = changed;
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.tensors.require("norm.weight", Shape{112}).format.type, WeightType::f32);
  EXPECT_EQ(checkpoint.tensors.require("token_embeddings.weight", Shape{311, 112}).format.type,
            WeightType::bf16);
}

/// Writes a file of the right size with no data on disk: a whole 270M would be slow to write.
/// `linear` is the format of the matrices but for the embedding.
void write_sparse_mlx_weights(const std::filesystem::path& path, const ModelConfig& config,
                              std::int64_t rows, const WeightFormat& linear = {WeightType::f16}) {
  OrderedJson header;
  std::uint64_t offset = 0;
  const auto add = [&](const std::string& name, const char* dtype, const Shape& shape) {
    std::uint64_t bytes = std::string_view(dtype) == "U32" ? 4 : 2;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  };
  for (TensorSpec spec : expected_tensors(config)) {
    const bool embedding = spec.name == "token_embeddings.weight";
    if (embedding) spec.shape[0] = rows;
    if (embedding || spec.shape.size() != 2 || !linear.affine()) {
      add(spec.name, "F16", spec.shape);
      continue;
    }
    const std::string module = spec.name.substr(0, spec.name.rfind('.'));
    add(spec.name, "U32", {spec.shape[0], spec.shape[1] * linear.bits / 32});
    for (const char* part : {".scales", ".biases"}) {
      add(module + part, "F16", {spec.shape[0], spec.shape[1] / linear.group_size});
    }
  }
  const std::string start = assemble(header.dump(), "");
  write_file(path, start);
  std::filesystem::resize_file(path, start.size() + offset);
}

class MlxFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto layers = std::array<std::array<std::int32_t, 3>, 16>{{
        {12, 3, 768},
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
        {20, 5, 5120},
    }};
    expected_.vocab_size = 32000;
    expected_.model_dim = 1280;
    expected_.head_dim = 64;
    for (const auto& [heads, kv_heads, ffn_dim] : layers) {
      expected_.layers.push_back({heads, kv_heads, ffn_dim});
    }
    write_sparse_mlx_weights(folder_ / "weights.safetensors", expected_, 32128);
    config_ = {{"model_name", "OpenELM-270M"}, {"vocab_size", 32128}, {"max_context_length", 2048}};
  }

  void write_config() const { write_file(folder_ / "config.json", config_.dump(2)); }

  ModelConfig expected_;
  OrderedJson config_;
  TempFolder folder_;
};

TEST_F(MlxFolder, OpensWithoutItsPaddingRows) {
  write_config();
  const Checkpoint checkpoint = open_checkpoint(folder_.path());
  EXPECT_EQ(checkpoint.config.name, "OpenELM-270M");
  EXPECT_EQ(checkpoint.config.layers, expected_.layers);
  EXPECT_EQ(checkpoint.config.parameter_count(), 271527168);
  EXPECT_EQ(checkpoint.tensors.require("token_embeddings.weight", Shape{32000, 1280}).bytes(),
            32000U * 1280U * 2U);
}

TEST_F(MlxFolder, LinearLayersMayBeQuantized) {
  // Apple's converter quantises linear layers, with the embedding, which is also the head, left in
  // 16 bits.
  for (const std::int32_t group_size : {32, 64}) {
    const WeightFormat format{WeightType::f16, 4, group_size};
    write_sparse_mlx_weights(folder_ / "weights.safetensors", expected_, 32128, format);
    config_["quantization"] = {{"group_size", group_size}, {"bits", 4}};
    write_config();
    const Checkpoint checkpoint = open_checkpoint(folder_.path());
    const auto& tensors = checkpoint.tensors;
    EXPECT_EQ(tensors.require("token_embeddings.weight", Shape{32000, 1280}).format,
              WeightFormat{WeightType::f16});
    const auto& up = tensors.require("layers.15.ffn.proj_1.weight", Shape{10240, 1280});
    EXPECT_EQ(up.format, format);
    EXPECT_EQ(static_cast<double>(up.bytes()), 10240 * 1280 * format.bits_per_weight() / 8);
  }
}

TEST_F(MlxFolder, OtherSizesTensorsAreRefused) {
  config_["model_name"] = "OpenELM-450M";
  write_config();
  expect_error(folder_.path(), {"weights.safetensors", "[32000, 1280]", "[32000, 1536]"});
}

TEST_F(MlxFolder, FaultsOfTheConfigurationAreNamed) {
  const auto expect_refused = [&](const char* field, const OrderedJson& value,
                                  const std::vector<std::string>& words) {
    const OrderedJson before = config_;
    config_[field] = value;
    write_config();
    expect_error(folder_.path(), words);
    config_ = before;
  };
  expect_refused("model_name", "OpenELM-7B", {"config.json", "model_name", "OpenELM-7B", "1_1B"});
  expect_refused("model_name", 7, {"config.json", "model_name", "must be a string"});
  expect_refused("vocab_size", nullptr, {"config.json", "vocab_size", "missing"});
  expect_refused("vocab_size", "32000", {"config.json", "vocab_size", "whole number"});
  expect_refused("max_context_length", nullptr, {"config.json", "max_context_length", "missing"});
  expect_refused("quantization", {{"bits", 4}}, {"config.json", "quantization", "group_size"});
}

}  // namespace
}  // namespace openelm::test
