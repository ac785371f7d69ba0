// Matrices that MLX has quantised (tests/data/mlx/make_affine.py) come to MLX's own values, through
// the loader and the tiles.

#include <bit>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoint/tensor_source.h"
#include "model/weights.h"
#include "parallel/thread_pool.h"
#include "quant/pack.h"

namespace openelm {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(OPENELM_TEST_DATA) / "mlx" / "affine";

/// FNV-1a, 64 bits, over the little-endian bytes of float32 values, in hexadecimal.
class Hash {
 public:
  void add(float value) {
    for (int i = 0; i < 4; ++i) {
      value_ ^= std::bit_cast<std::uint32_t>(value) >> (8 * i) & 0xFFU;
      value_ *= 1099511628211U;
    }
  }
  std::string text() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value_));
    return digits;
  }

 private:
  std::uint64_t value_ = 14695981039346656037U;
};

TEST(MlxAffine, ValuesAreMlxs) {
  std::ifstream file(kFolder / "values.json");
  const auto values = nlohmann::json::parse(file);
  const Checkpoint checkpoint = open_checkpoint(kFolder);
  EXPECT_TRUE(checkpoint.warnings.empty());
  ThreadPool pool(2);
  const Weights weights = load_weights(checkpoint, pool, {});
  const LayerWeights& layer = weights.layers[0];
  const std::vector<std::pair<std::string, const PackedMatrix*>> matrices = {
      {"transformer.token_embeddings.weight", &weights.embedding},
      {"transformer.layers.0.attn.qkv_proj.weight", &layer.qkv},
      {"transformer.layers.0.attn.out_proj.weight", &layer.out},
      {"transformer.layers.0.ffn.proj_1.weight", &layer.up},
      {"transformer.layers.0.ffn.proj_2.weight", &layer.down},
      {"lm_head.weight", &weights.head}};
  ASSERT_EQ(values.size(), matrices.size());
  for (const auto& [name, matrix] : matrices) {
    ASSERT_TRUE(matrix->format.affine()) << name;
    const auto& expected = values.at(name);
    Hash hash;
    std::vector<float> row(static_cast<std::size_t>(matrix->k));
    for (std::int32_t r = 0; r < matrix->n; ++r) {
      unpack_row(*matrix, r, row.data());
      for (const float value : row) hash.add(value);
      if (r > 0) continue;
      for (std::size_t i = 0; i < expected.at("first").size(); ++i) {
        EXPECT_EQ(row[i], expected.at("first")[i].get<float>()) << name << " [0, " << i << "]";
      }
    }
    EXPECT_EQ(hash.text(), expected.at("fnv1a")) << name << " " << to_string(matrix->format);
  }
}

}  // namespace
}  // namespace openelm
