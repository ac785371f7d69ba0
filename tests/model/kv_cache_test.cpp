#include "model/kv_cache.h"

#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace openelm {
namespace {

ModelConfig small_config() {
  ModelConfig c;
  c.vocab_size = 32;
  c.model_dim = 48;
  c.head_dim = 24;  // values are stored in rows of 32
  c.max_context = 64;
  c.layers = {{4, 1, 64}, {8, 2, 96}};
  return c;
}

TEST(KvCache, PagesAreGivenAndTakenBack) {
  KvCache cache(small_config(), KvType::f32, 4);
  const auto a = cache.add_sequence();
  const auto b = cache.add_sequence();
  EXPECT_NE(a, b);
  EXPECT_TRUE(cache.grow(a, 17));  // two pages
  EXPECT_TRUE(cache.grow(b, 16));
  EXPECT_EQ(cache.free_pages(), 1);
  EXPECT_FALSE(cache.grow(b, 49));  // two more than it has
  EXPECT_EQ(cache.pages(b).size(), 1U);
  EXPECT_EQ(cache.free_pages(), 1);
  cache.shrink(a, 16);
  EXPECT_EQ(cache.free_pages(), 2);
  cache.remove_sequence(a);
  EXPECT_EQ(cache.free_pages(), 3);
  EXPECT_EQ(cache.add_sequence(), a);  // numbers are used again
  EXPECT_TRUE(cache.pages(a).empty());
}

TEST(KvCache, AFreshSequenceGetsPagesThatLieTogether) {
  KvCache cache(small_config(), KvType::f16, 8);
  const auto a = cache.add_sequence();
  ASSERT_TRUE(cache.grow(a, 8 * 16));
  for (std::size_t i = 1; i < 8; ++i) EXPECT_EQ(cache.pages(a)[i], cache.pages(a)[i - 1] + 1);
  EXPECT_EQ(cache.keys(0, 0, 1) - cache.keys(0, 0, 0), 16 * 24 * 2);
  EXPECT_EQ(cache.values(0, 0, 1) - cache.values(0, 0, 0), 16 * 32 * 2);
}

TEST(KvCache, NoTwoPagesOverlap) {
  const ModelConfig config = small_config();
  KvCache cache(config, KvType::f32, 3);
  std::vector<std::pair<const std::byte*, std::size_t>> parts;
  for (std::size_t l = 0; l < config.layers.size(); ++l) {
    for (std::int32_t h = 0; h < config.layers[l].n_kv_heads; ++h) {
      for (std::int32_t p = 0; p < 3; ++p) {
        parts.emplace_back(cache.keys(l, h, p), 16 * 24 * 4);
        parts.emplace_back(cache.values(l, h, p), 16 * 32 * 4);
      }
    }
  }
  std::sort(parts.begin(), parts.end());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    EXPECT_GE(parts[i].first, parts[i - 1].first + parts[i - 1].second);
  }
  EXPECT_EQ(cache.bytes(), parts.size() / 2 * (16 * 24 * 4 + 16 * 32 * 4));
  EXPECT_EQ(kv_bytes(config, KvType::f32, 48), cache.bytes());
}

TEST(KvCache, StoresKeysInTilesAndValuesInRows) {
  KvCache cache(small_config(), KvType::f32, 2);
  const auto a = cache.add_sequence();
  ASSERT_TRUE(cache.grow(a, 20));
  std::vector<float> key(24);
  std::vector<float> value(24);
  for (std::size_t i = 0; i < 24; ++i) {
    key[i] = static_cast<float>(i + 1);
    value[i] = -static_cast<float>(i + 1);
  }
  cache.store(1, 1, a, 18, {reinterpret_cast<const std::byte*>(key.data()), 1.0F},
              {reinterpret_cast<const std::byte*>(value.data()), 1.0F});
  const auto page = cache.pages(a)[1];
  const auto* tile = reinterpret_cast<const float*>(cache.keys(1, 1, page));
  const auto* rows = reinterpret_cast<const float*>(cache.values(1, 1, page));
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(tile[i * 16 + 2], key[i]);
    EXPECT_EQ(tile[i * 16 + 3], 0.0F);
    EXPECT_EQ(rows[2 * 32 + i], value[i]);
  }
  for (std::size_t i = 24; i < 32; ++i) EXPECT_EQ(rows[2 * 32 + i], 0.0F);
}

TEST(KvCache, KeepsAScaleForEachPositionsKeyAndValue) {
  const ModelConfig config = small_config();
  KvCache cache(config, KvType::q8, 3);
  EXPECT_EQ(kv_bytes(config, KvType::q8, 48), cache.bytes());
  const auto a = cache.add_sequence();
  ASSERT_TRUE(cache.grow(a, 20));
  const std::vector<std::byte> key(24, std::byte{3});
  const std::vector<std::byte> value(24, std::byte{5});
  cache.store(1, 1, a, 18, {key.data(), 0.5F}, {value.data(), 0.25F});
  const auto page = cache.pages(a)[1];
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(cache.keys(1, 1, page)[i * 16 + 2], std::byte{3});
    EXPECT_EQ(cache.values(1, 1, page)[2 * 32 + i], std::byte{5});
  }
  for (std::int32_t slot = 0; slot < 16; ++slot) {
    EXPECT_EQ(cache.key_scales(1, 1, page)[slot], slot == 2 ? 0.5F : 0.0F);
    EXPECT_EQ(cache.value_scales(1, 1, page)[slot], slot == 2 ? 0.25F : 0.0F);
  }
}

}  // namespace
}  // namespace openelm
