// Sharded checkpoints and the choice of weight files.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/model_folder.h"

namespace openelm::test {
namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

class Shards : public testing::Test {
 protected:
  void SetUp() override { index_ = model_.write_shards(folder_.path()); }

  void write_index() const { write_file(folder_ / kIndex, index_.dump()); }

  void expect_refused(std::vector<std::string> words) const {
    write_index();
    expect_error(folder_.path(), words);
  }

  ModelFolder model_ = ModelFolder::load();
  TempFolder folder_;
  OrderedJson index_;
};

TEST_F(Shards, Open) {
  write_index();
  const Checkpoint checkpoint = open_checkpoint(folder_.path());
  EXPECT_TRUE(checkpoint.warnings.empty());
  EXPECT_EQ(checkpoint.tensors.all().size(), model_.weights.names().size());
  EXPECT_EQ(checkpoint.tensors.origin(), folder_ / kIndex);
}

TEST_F(Shards, MissingShardIsNamed) {
  std::filesystem::remove(folder_ / "b.safetensors");
  expect_refused({"b.safetensors", "missing", kIndex});
}

TEST_F(Shards, TruncatedShardIsNamed) {
  std::filesystem::resize_file(folder_ / "b.safetensors", 5000);
  expect_refused({"b.safetensors", "5000 bytes", "truncated"});
}

TEST_F(Shards, StrayFileIsNeverOpened) {
  write_file(folder_ / "model.safetensors", "not weights at all");
  write_file(folder_ / "c.safetensors", "nor these");
  write_index();
  EXPECT_EQ(error_of(folder_.path()), std::nullopt);
}

TEST_F(Shards, IndexThatPointsToTheWrongShardIsRefused) {
  index_["weight_map"]["transformer.token_embeddings.weight"] = "b.safetensors";
  expect_refused({"b.safetensors", "transformer.token_embeddings.weight", kIndex});
}

TEST_F(Shards, IndexThatListsMoreThanTheShardsHoldIsRefused) {
  index_["weight_map"]["transformer.layers.9.attn_norm.weight"] = "b.safetensors";
  expect_refused({"b.safetensors", "layers.9.attn_norm.weight", "not in this shard"});
}

TEST_F(Shards, IndexThatListsLessThanTheModelNeedsIsRefused) {
  index_["weight_map"].erase("transformer.norm.weight");
  expect_refused({kIndex, "transformer.norm.weight", "missing"});
}

TEST_F(Shards, TensorInAShardButNotInTheIndexIsIgnoredWithAWarning) {
  Safetensors shard = Safetensors::parse(read_file(folder_ / "b.safetensors"));
  shard.append("extra", "F32", {2}, 8);
  write_file(folder_ / "b.safetensors", shard.bytes());
  write_index();
  const Checkpoint checkpoint = open_checkpoint(folder_.path());
  ASSERT_EQ(checkpoint.warnings.size(), 1U);
  EXPECT_NE(checkpoint.warnings[0].find("\"extra\""), std::string::npos);
}

TEST_F(Shards, TensorInBothShardsIsTakenFromTheOneTheIndexNames) {
  const std::string name = "transformer.norm.weight";
  Safetensors shard = Safetensors::parse(read_file(folder_ / "a.safetensors"));
  shard.append(name, "BF16", {112}, 224);
  write_file(folder_ / "a.safetensors", shard.bytes());
  write_index();
  const Checkpoint checkpoint = open_checkpoint(folder_.path());
  const std::vector<std::int64_t> shape = {112};
  const TensorView& norm = checkpoint.tensors.require("norm.weight", shape);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(norm.data.data()), norm.data.size()),
            model_.weights.subset({name}).data);
}

TEST_F(Shards, NamesThatLeaveTheFolderAreRefused) {
  for (const char* name : {"../a.safetensors", "/etc/passwd", "sub/a.safetensors", "..", ".", "",
                           "a\\b", "a\nb.safetensors"}) {
    index_["weight_map"]["transformer.norm.weight"] = name;
    expect_refused({kIndex, "is not a plain file name"});
  }
}

TEST_F(Shards, NameWithANulIsRefused) {
  index_["weight_map"]["transformer.norm.weight"] = std::string("b.safetensors\0x", 15);
  expect_refused({kIndex, "is not a plain file name"});
}

TEST_F(Shards, FolderInPlaceOfAShardIsRefused) {
  std::filesystem::remove(folder_ / "b.safetensors");
  std::filesystem::create_directory(folder_ / "b.safetensors");
  expect_refused({"b.safetensors", "is a folder"});
}

TEST_F(Shards, BrokenIndexIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "empty"},
      {"{", "not valid JSON"},
      {"[]", "not a JSON object"},
      {"{}", "weight_map"},
      {R"({"weight_map": []})", "weight_map"},
      {R"({"weight_map": {}})", "weight_map"},
      {R"({"weight_map": {"a": 1}})", "\"a\" is not a file name"},
      {R"({"weight_map": {"a": NaN}})", "is not a plain file name"},
      {R"({"weight_map": {"a": "b", "a": "c"}})", "repeated key \"a\""},
  };
  for (const auto& [text, words] : cases) {
    write_file(folder_ / kIndex, text);
    expect_error(folder_.path(), {kIndex, words});
  }
}

TEST(WeightFiles, ModelComesBeforeWeights) {
  const TempFolder folder;
  const ModelFolder model = ModelFolder::load();
  model.write(folder.path());
  write_file(folder / "weights.safetensors", "not looked at");
  EXPECT_EQ(open_checkpoint(folder.path()).tensors.origin(), folder / "model.safetensors");
}

TEST(WeightFiles, MlxNameIsTheLastResort) {
  const TempFolder folder;
  ModelFolder::load().write(folder.path(), "weights.safetensors");
  EXPECT_EQ(open_checkpoint(folder.path()).tensors.origin(), folder / "weights.safetensors");
}

TEST(WeightFiles, NoneSaysWhatWasLookedFor) {
  const TempFolder folder;
  write_file(folder / "config.json", ModelFolder::load().config.dump());
  write_file(folder / "pytorch_model.bin", "x");
  expect_error(folder.path(), {folder.path().string(), "no weights", kIndex, "model.safetensors",
                               "weights.safetensors"});
}

}  // namespace
}  // namespace openelm::test
