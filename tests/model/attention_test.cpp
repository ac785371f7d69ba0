#include "model/attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/float_bits.h"
#include "support/variants.h"

namespace openelm {
namespace {

constexpr double kRopeBase = 10000.0;

/// One attention layer with made-up queries, keys and values, and the same computed in double.
struct Case {
  std::int32_t head_dim;
  std::int32_t n_heads;
  std::int32_t n_kv_heads;
  std::int32_t past;
  std::int32_t n_tokens;
};

float wave(std::int64_t i) { return static_cast<float>(std::sin(0.37 * static_cast<double>(i))); }

class AttentionCases : public testing::TestWithParam<std::tuple<std::string, Case>> {};

/// The head rotated for its position, in double.
std::vector<float> rotated(const float* head, std::int32_t head_dim, std::int32_t position) {
  std::vector<float> out(static_cast<std::size_t>(head_dim));
  const std::int32_t half = head_dim / 2;
  for (std::int32_t j = 0; j < half; ++j) {
    const double angle = position / std::pow(kRopeBase, 2.0 * j / head_dim);
    const double a = head[j];
    const double b = head[j + half];
    out[static_cast<std::size_t>(j)] =
        static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
    out[static_cast<std::size_t>(j + half)] =
        static_cast<float>(b * std::cos(angle) + a * std::sin(angle));
  }
  return out;
}

/// Attention of query head h at position p, over keys and values [position][kv head][head_dim].
std::vector<double> exact(const Case& c, const float* query, std::int32_t kv_head, std::int32_t p,
                          const std::vector<float>& keys, const std::vector<float>& values) {
  const auto at = [&](const std::vector<float>& all, std::int32_t position, std::int32_t d) {
    return static_cast<double>(
        all[static_cast<std::size_t>((position * c.n_kv_heads + kv_head) * c.head_dim + d)]);
  };
  std::vector<double> weights(static_cast<std::size_t>(p + 1));
  double sum = 0;
  for (std::int32_t t = 0; t <= p; ++t) {
    double score = 0;
    for (std::int32_t d = 0; d < c.head_dim; ++d) score += query[d] * at(keys, t, d);
    weights[static_cast<std::size_t>(t)] = std::exp(score / std::sqrt(c.head_dim));
    sum += weights[static_cast<std::size_t>(t)];
  }
  std::vector<double> out(static_cast<std::size_t>(c.head_dim), 0.0);
  for (std::int32_t t = 0; t <= p; ++t) {
    for (std::int32_t d = 0; d < c.head_dim; ++d) {
      out[static_cast<std::size_t>(d)] +=
          weights[static_cast<std::size_t>(t)] / sum * at(values, t, d);
    }
  }
  return out;
}

TEST_P(AttentionCases, EqualsSoftmaxInDouble) {
  const auto& [isa, c] = GetParam();
  const kernels::KernelTable& table = kernels::select(isa.c_str());
  ModelConfig config;
  config.vocab_size = 16;
  config.model_dim = 16;
  config.head_dim = c.head_dim;
  config.max_context = 1024;
  config.qk_norm = false;
  config.layers = {{c.n_heads, c.n_kv_heads, 16}};
  const LayerWeights weights;
  const RopeTable rope(c.head_dim, kRopeBase, config.max_context);
  ThreadPool pool(2);
  const ExecContext ctx{table, pool};

  KvCache cache(config, KvType::f32, 64);
  const std::int32_t total = c.past + c.n_tokens;
  const auto sequence = cache.add_sequence();
  ASSERT_TRUE(cache.grow(sequence, total));
  const auto kv_width = static_cast<std::size_t>(c.n_kv_heads * c.head_dim);
  std::vector<float> keys(kv_width * static_cast<std::size_t>(total));
  std::vector<float> values(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = 2 * wave(static_cast<std::int64_t>(i * 7 % 1013));
    values[i] = wave(static_cast<std::int64_t>(i * 11 % 1009) + 5);
  }
  Activations acts(config, c.n_tokens, 1024, 2);
  // New tokens' keys and values come with the queries; earlier ones are in the cache.
  for (std::int32_t p = 0; p < total; ++p) {
    for (std::int32_t h = 0; h < c.n_kv_heads; ++h) {
      const auto offset = static_cast<std::size_t>((p * c.n_kv_heads + h) * c.head_dim);
      if (p >= c.past) {
        float* const key = acts.qkv.row(p - c.past) + (c.n_heads + h) * c.head_dim;
        std::copy_n(&keys[offset], c.head_dim, key);
        std::copy_n(&values[offset], c.head_dim, key + c.n_kv_heads * c.head_dim);
      }
      std::ranges::copy(rotated(&keys[offset], c.head_dim, p), &keys[offset]);
      if (p >= c.past) continue;
      cache.store(0, h, sequence, p, {reinterpret_cast<const std::byte*>(&keys[offset]), 1.0F},
                  {reinterpret_cast<const std::byte*>(&values[offset]), 1.0F});
    }
  }

  std::vector<TokenId> tokens(static_cast<std::size_t>(c.n_tokens), 0);
  std::vector<std::int32_t> positions;
  for (std::int32_t t = 0; t < c.n_tokens; ++t) positions.push_back(c.past + t);
  const std::vector<std::int32_t> sequences(tokens.size(), sequence);
  const Batch batch{.tokens = tokens, .positions = positions, .sequences = sequences, .wanted = {}};
  std::vector<std::vector<float>> queries;
  for (std::int32_t t = 0; t < c.n_tokens; ++t) {
    std::vector<float> query(static_cast<std::size_t>(c.n_heads * c.head_dim));
    for (std::size_t i = 0; i < query.size(); ++i) {
      query[i] = 3 * wave(static_cast<std::int64_t>(i) * 3 + t * 31);
      acts.qkv.row(t)[i] = query[i];
    }
    for (std::int32_t h = 0; h < c.n_heads; ++h) {
      float* const head = query.data() + h * c.head_dim;
      std::ranges::copy(rotated(head, c.head_dim, c.past + t), head);
    }
    queries.push_back(std::move(query));
  }

  const auto tiles = make_query_tiles(batch, c.n_heads / c.n_kv_heads);
  const AttentionLayer layer{ctx,   config, config.layers[0], weights, rope, cache, acts, batch,
                             tiles, 0};
  pool.run([&](const Worker& worker) noexcept { attend(layer, worker); });

  for (std::int32_t t = 0; t < c.n_tokens; ++t) {
    for (std::int32_t h = 0; h < c.n_heads; ++h) {
      const std::int32_t kv_head = h / (c.n_heads / c.n_kv_heads);
      const auto expected = exact(c, queries[static_cast<std::size_t>(t)].data() + h * c.head_dim,
                                  kv_head, c.past + t, keys, values);
      for (std::int32_t d = 0; d < c.head_dim; ++d) {
        ASSERT_NEAR(acts.attn.row(t)[h * c.head_dim + d], expected[static_cast<std::size_t>(d)],
                    2e-5)
            << "token " << t << " head " << h << " d " << d;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Variants, AttentionCases,
    testing::Combine(testing::ValuesIn(test::runnable_variants()),
                     testing::Values(Case{64, 12, 3, 0, 1},      // the very first token
                                     Case{64, 12, 3, 300, 1},    // a decode step over two chunks
                                     Case{64, 12, 3, 0, 45},     // a prompt
                                     Case{64, 8, 2, 250, 20},    // a tile across a chunk's border
                                     Case{128, 4, 4, 20, 9},     // multi-head
                                     Case{80, 40, 1, 255, 3},    // more heads than one block
                                     Case{8, 3, 1, 17, 5},       // narrow heads
                                     Case{24, 6, 2, 511, 2},     // values padded to 32
                                     Case{256, 4, 2, 600, 2})),  // wide heads
    [](const auto& info) {
      const Case& c = std::get<1>(info.param);
      return std::get<0>(info.param) + "_d" + std::to_string(c.head_dim) + "_h" +
             std::to_string(c.n_heads) + "_kv" + std::to_string(c.n_kv_heads) + "_past" +
             std::to_string(c.past) + "_m" + std::to_string(c.n_tokens);
    });

TEST(QueryTiles, NeverMixSequencesAndStayWithinTheRows) {
  const std::vector<TokenId> tokens(40, 0);
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> sequences;
  for (std::int32_t i = 0; i < 30; ++i) {
    positions.push_back(100 + i);
    sequences.push_back(3);
  }
  for (std::int32_t s = 0; s < 10; ++s) {
    positions.push_back(s * 7);
    sequences.push_back(10 + s);
  }
  const auto tiles = make_query_tiles(
      {.tokens = tokens, .positions = positions, .sequences = sequences, .wanted = {}}, 4);
  std::int32_t row = 0;
  for (const QueryTile& tile : tiles) {
    EXPECT_EQ(tile.first_row, row);
    EXPECT_LE(tile.n_tokens * 4, Activations::kQueryRows);
    EXPECT_EQ(tile.first_position, positions[static_cast<std::size_t>(row)]);
    EXPECT_EQ(tile.sequence, sequences[static_cast<std::size_t>(row)]);
    row += tile.n_tokens;
  }
  EXPECT_EQ(row, 40);
  EXPECT_EQ(tiles.size(), 4U + 10U);
}

}  // namespace
}  // namespace openelm
