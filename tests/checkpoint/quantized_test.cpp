// Folders with MLX's affine-quantised matrices: what a sound one gives, and how faulty ones are
// refused.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/quantized_model.h"
#include "checkpoint/tensor_layout.h"

namespace openelm::test {
namespace {

using Shape = std::vector<std::int64_t>;

const std::string kProj = "transformer.layers.1.ffn.proj_1";
const std::string kEmbedding = "transformer.token_embeddings";

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Quantized : public testing::Test {
 protected:
  Checkpoint open() {
    model_.write(folder_.path());
    return open_checkpoint(folder_.path());
  }

  void expect_refused(const std::vector<std::string>& words) {
    model_.write(folder_.path());
    expect_error(folder_.path(), words);
  }

  void start(const Groups& groups = {}) {
    model_ = ModelFolder::load("tiny-mha");
    quantize_matrices(model_, groups);
  }

  ModelFolder model_ = ModelFolder::load("tiny-mha");
  TempFolder folder_;
};

TEST_F(Quantized, ViewsShowTheThreeParts) {
  for (const std::int64_t bits : {4, 8}) {
    for (const auto& [dtype, type] : {std::pair{"F16", WeightType::f16},
                                      {"BF16", WeightType::bf16},
                                      {"F32", WeightType::f32}}) {
      start({.bits = bits, .dtype = dtype});
      const Checkpoint checkpoint = open();
      EXPECT_TRUE(checkpoint.warnings.empty());
      const auto& tensor = checkpoint.tensors.require("layers.1.ffn.proj_1.weight", Shape{252, 96});
      EXPECT_EQ(tensor.format, (WeightFormat{type, static_cast<std::int32_t>(bits), 32}));
      EXPECT_EQ(tensor.name, kProj + ".weight");
      EXPECT_EQ(text_of(tensor.data), model_.weights.subset({kProj + ".weight"}).data);
      EXPECT_EQ(text_of(tensor.scales), model_.weights.subset({kProj + ".scales"}).data);
      EXPECT_EQ(text_of(tensor.biases), model_.weights.subset({kProj + ".biases"}).data);
      EXPECT_EQ(tensor.data.size(), static_cast<std::size_t>(252 * 96 * bits / 8));
      checkpoint.tensors.release(tensor);
    }
  }
}

TEST_F(Quantized, MatricesOfOtherWidthsStayPlain) {
  start();
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.tensors.require("layers.0.ffn.proj_2.weight", Shape{96, 70}).format,
            WeightFormat{WeightType::f32});
  EXPECT_TRUE(
      checkpoint.tensors.require("layers.1.attn.out_proj.weight", Shape{96, 160}).format.affine());
}

TEST_F(Quantized, PaddingRowsAreCutFromAllParts) {
  start();
  model_.config["vocab_size"] = 250;
  const Checkpoint checkpoint = open();
  for (const char* name : {"token_embeddings.weight", "lm_head.weight"}) {
    const auto& tensor = checkpoint.tensors.require(name, Shape{250, 96});
    EXPECT_EQ(tensor.data.size(), 250U * 96 / 2);
    EXPECT_EQ(tensor.scales.size(), 250U * 3 * 2);
    EXPECT_EQ(tensor.biases.size(), 250U * 3 * 2);
  }
  EXPECT_EQ(checkpoint.warnings.size(), 2U);
}

TEST_F(Quantized, CoreNetNamesWork) {
  start();
  Safetensors renamed{OrderedJson::object(), model_.weights.data};
  for (const std::string& name : model_.weights.names()) {
    std::string core = canonical_name(name);
    if (core.starts_with("lm_head.")) core.replace(0, 7, "classifier");
    renamed.header[core] = model_.weights.header[name];
  }
  model_.weights = renamed;
  model_.config["quantization"]["classifier"] = {{"bits", 4}, {"group_size", 32}};
  const Checkpoint checkpoint = open();
  EXPECT_TRUE(checkpoint.warnings.empty());
  EXPECT_TRUE(checkpoint.tensors.require("lm_head.weight", Shape{257, 96}).format.affine());
}

TEST_F(Quantized, PartsMayLieInDifferentShards) {
  start();
  std::vector<std::string> first;
  std::vector<std::string> second;
  for (const std::string& name : model_.weights.names()) {
    (name.ends_with(".weight") ? first : second).push_back(name);
  }
  OrderedJson index;
  for (const std::string& name : first) index["weight_map"][name] = "a.safetensors";
  for (const std::string& name : second) index["weight_map"][name] = "b.safetensors";
  write_file(folder_ / "config.json", model_.config.dump());
  write_file(folder_ / "a.safetensors", model_.weights.subset(first).bytes());
  write_file(folder_ / "b.safetensors", model_.weights.subset(second).bytes());
  write_file(folder_ / "model.safetensors.index.json", index.dump());
  const Checkpoint checkpoint = open_checkpoint(folder_.path());
  const auto& tensor = checkpoint.tensors.require("layers.1.ffn.proj_1.weight", Shape{252, 96});
  EXPECT_EQ(text_of(tensor.biases), model_.weights.subset({kProj + ".biases"}).data);
  checkpoint.tensors.release(tensor);
}

TEST_F(Quantized, OverridesOfSingleModules) {
  start();
  replace_tensor(model_, kProj + ".weight", "U32", {252, 24});
  replace_tensor(model_, "transformer.layers.0.attn.qkv_proj.weight", "F32", {240, 96});
  remove_tensor(model_, "transformer.layers.0.attn.qkv_proj.scales");
  remove_tensor(model_, "transformer.layers.0.attn.qkv_proj.biases");
  model_.config["quantization"][kProj] = {{"bits", 8}, {"group_size", 32}, {"mode", "affine"}};
  model_.config["quantization"]["transformer.layers.0.attn.qkv_proj"] = false;
  model_.config["quantization"]["transformer.layers.0.ffn.proj_1"] = true;
  const Checkpoint checkpoint = open();
  const auto format = [&](const char* name) { return checkpoint.tensors.all().at(name).format; };
  EXPECT_EQ(format("layers.1.ffn.proj_1.weight"), (WeightFormat{WeightType::f16, 8, 32}));
  EXPECT_EQ(format("layers.0.ffn.proj_1.weight"), (WeightFormat{WeightType::f16, 4, 32}));
  EXPECT_EQ(format("layers.0.attn.qkv_proj.weight"), WeightFormat{WeightType::f32});
}

TEST_F(Quantized, EitherEntryOfTheConfigurationWillDo) {
  start();
  model_.config["quantization_config"] = model_.config["quantization"];
  EXPECT_NO_THROW(open());
  model_.config["quantization"] = nullptr;
  EXPECT_NO_THROW(open());
  // Where both are there, mlx-lm looks at the first alone.
  model_.config["quantization"] = model_.config["quantization_config"];
  model_.config["quantization_config"] = {{"quant_method", "awq"}};
  EXPECT_NO_THROW(open());
}

TEST_F(Quantized, AnEntryWithoutQuantizedTensorsIsHarmless) {
  model_.config["quantization"] = {{"group_size", 64}, {"bits", 4}};
  EXPECT_FALSE(open().tensors.all().at("lm_head.weight").format.affine());
}

TEST_F(Quantized, PartsOfATiedHeadAreNotUsed) {
  model_ = ModelFolder::load();
  quantize_matrices(model_);
  replace_tensor(model_, "lm_head.weight", "U32", {311, 14});
  replace_tensor(model_, "lm_head.scales", "F16", {311, 4});
  replace_tensor(model_, "lm_head.biases", "F16", {311, 4});
  const Checkpoint checkpoint = open();
  ASSERT_EQ(checkpoint.warnings.size(), 1U);
  EXPECT_NE(checkpoint.warnings[0].find("\"lm_head.weight\" is not used"), std::string::npos);
}

TEST_F(Quantized, FormatsThatAreNotReadAreNamed) {
  start();
  const auto refuse = [&](const OrderedJson& entry, const std::vector<std::string>& words) {
    model_.config["quantization"] = entry;
    expect_refused(words);
  };
  for (const int bits : {2, 3, 5, 6, 16, -4}) {
    refuse({{"group_size", 32}, {"bits", bits}},
           {"config.json", "\"bits\" is " + std::to_string(bits), "supported are 4 and 8"});
  }
  refuse({{"group_size", 16}, {"bits", 4}}, {"\"group_size\" is 16", "32, 64 and 128"});
  refuse({{"group_size", 32}, {"bits", 4.5}}, {"\"bits\" is 4.5"});
  refuse({{"group_size", 32}, {"bits", "4"}}, {"\"bits\" is \"4\""});
  refuse({{"group_size", 32}}, {"\"bits\" is missing"});
  refuse({{"bits", 4}}, {"\"group_size\" is missing"});
  refuse({{"group_size", 32}, {"bits", 4}, {"mode", "mxfp4"}},
         {"\"mode\" is \"mxfp4\"", "supported is \"affine\""});
  refuse({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}}, {"quant_method", "gptq"});
  refuse({{"group_size", 32}, {"bits", 4}, {kProj, {{"bits", 6}}}},
         {"\"" + kProj + "\": \"bits\" is 6"});
  refuse({{"group_size", 32}, {"bits", 4}, {kProj, {{"mode", "nvfp4"}}}}, {kProj, "nvfp4"});
  for (const OrderedJson& entry : {OrderedJson(4), OrderedJson(true), OrderedJson::array()}) {
    refuse(entry, {"config.json: \"quantization\" must be an object"});
  }
}

TEST_F(Quantized, MissingPartsAreNamed) {
  start();
  remove_tensor(model_, kProj + ".scales");
  expect_refused({kProj + ".weight", "U32", ".scales are missing"});
  start();
  remove_tensor(model_, kProj + ".biases");
  expect_refused({kProj + ".scales", kProj + ".biases\" is missing"});
  start();
  model_.config.erase("quantization");
  expect_refused({".scales", "config.json has no \"quantization\" entry"});
  start();
  model_.config["quantization"][kProj] = false;
  expect_refused({kProj + ".scales", "is not quantised"});
}

TEST_F(Quantized, BothShapesAreInTheMessage) {
  start();
  replace_tensor(model_, kProj + ".weight", "U32", {252, 24});
  expect_refused({kProj + ".weight", "[252, 24]", "4-bit", "[252, 96]", "need [252, 12]"});
  start();
  replace_tensor(model_, kProj + ".scales", "F16", {252, 2});
  expect_refused({kProj + ".scales", "[252, 2]", "groups of 32", "need [252, 3]"});
  start();
  replace_tensor(model_, kProj + ".biases", "F16", {251, 3});
  expect_refused({kProj + ".biases", "[251, 3]", "need [252, 3]"});
  start();
  replace_tensor(model_, kProj + ".weight", "U32", {3024});
  expect_refused({kProj + ".weight", "[3024]"});
  start();
  replace_tensor(model_, kProj + ".weight", "U32", {});
  expect_refused({kProj + ".weight", "[]"});
  start();  // all parts agree, but not with the architecture
  replace_tensor(model_, kProj + ".weight", "U32", {200, 12});
  replace_tensor(model_, kProj + ".scales", "F16", {200, 3});
  replace_tensor(model_, kProj + ".biases", "F16", {200, 3});
  expect_refused({kProj + ".weight", "[200, 96]", "[252, 96]"});
  start({.bits = 8});
  model_.config["quantization"]["bits"] = 4;
  expect_refused({"4-bit", "need"});
  start();
  model_.config["quantization"]["group_size"] = 64;
  expect_refused({kEmbedding, "96 columns", "group size 64"});
}

TEST_F(Quantized, TypesOfThePartsAreChecked) {
  start();
  replace_tensor(model_, kProj + ".weight", "F16", {252, 96});
  expect_refused({kProj + ".weight", "F16", "U32"});
  start();
  replace_tensor(model_, kProj + ".scales", "U8", {252, 3});
  expect_refused({kProj + ".scales", "U8", "F32, F16 or BF16"});
  start();
  replace_tensor(model_, kProj + ".biases", "BF16", {252, 3});
  expect_refused({kProj + ".biases", "BF16", "both the same"});
}

TEST_F(Quantized, LengthOfTheQuantsIsChecked) {
  start();
  model_.weights.header[kProj + ".weight"]["shape"] = {252, 13};
  expect_refused({kProj + ".weight", "U32", "bytes"});
}

}  // namespace
}  // namespace openelm::test
