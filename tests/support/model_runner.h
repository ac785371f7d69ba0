#pragma once

#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/tensor_source.h"
#include "kernels/kernels.h"
#include "model/forward.h"
#include "parallel/thread_pool.h"

namespace openelm::test {

/// A model on threads of its own, driven by batches that the test puts together.
class ModelRunner {
 public:
  ModelRunner(const std::string& checkpoint, int threads, const std::string& isa, KvType kv_type,
              std::int32_t n_pages = 64, std::int32_t max_rows = 512)
      : pool_(threads),
        kernels_(kernels::select(isa.c_str())),
        model_(load(checkpoint, pool_)),
        cache_(model_.config, kv_type, n_pages),
        acts_(model_.config, max_rows, n_pages * KvCache::kPageSize, threads) {}

  KvCache& cache() { return cache_; }
  const ModelConfig& config() const { return model_.config; }

  /// A stretch of one sequence's tokens to evaluate.
  struct Part {
    std::int32_t sequence;
    std::int32_t begin;  // position of the first token
    std::span<const TokenId> tokens;
  };

  /// One pass over all parts; returns the logits of every row, [rows][vocab].
  std::vector<std::vector<float>> pass(const std::vector<Part>& parts) {
    std::vector<TokenId> tokens;
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> sequences;
    for (const Part& part : parts) {
      EXPECT_TRUE(
          cache_.grow(part.sequence, part.begin + static_cast<std::int32_t>(part.tokens.size())));
      for (std::size_t i = 0; i < part.tokens.size(); ++i) {
        tokens.push_back(part.tokens[i]);
        positions.push_back(part.begin + static_cast<std::int32_t>(i));
        sequences.push_back(part.sequence);
      }
    }
    std::vector<std::int32_t> wanted(tokens.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    const auto vocab = static_cast<std::size_t>(model_.config.vocab_size);
    const std::size_t stride = (vocab + 15) / 16 * 16;
    const AlignedArray<float> logits(stride * tokens.size(), "test logits");
    EXPECT_TRUE(forward({kernels_, pool_}, model_, cache_, acts_,
                        {.tokens = tokens,
                         .positions = positions,
                         .sequences = sequences,
                         .wanted = wanted,
                         .logits = logits.data(),
                         .logits_stride = static_cast<std::int64_t>(stride)}));
    std::vector<std::vector<float>> rows;
    for (std::size_t r = 0; r < tokens.size(); ++r) {
      const float* row = logits.data() + r * stride;
      rows.emplace_back(row, row + vocab);
    }
    return rows;
  }

  /// Logits after every token of one new sequence, evaluated `chunk` tokens at a time.
  std::vector<std::vector<float>> run(std::span<const TokenId> tokens, std::size_t chunk) {
    const std::int32_t sequence = cache_.add_sequence();
    std::vector<std::vector<float>> rows;
    for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const auto part = tokens.subspan(begin, std::min(chunk, tokens.size() - begin));
      for (auto& row : pass({{sequence, static_cast<std::int32_t>(begin), part}})) {
        rows.push_back(std::move(row));
      }
    }
    cache_.remove_sequence(sequence);
    return rows;
  }

 private:
  /// "name" or "name+q4": quantised while it is loaded, in groups of 32.
  static Model load(const std::string& checkpoint, ThreadPool& pool) {
    const std::string name = checkpoint.substr(0, checkpoint.find('+'));
    std::optional<QuantizeOptions> quantize;
    if (name != checkpoint) quantize = {.bits = checkpoint.back() - '0', .group_size = 32};
    const std::filesystem::path data = OPENELM_TEST_DATA;
    const std::filesystem::path bundled = data.parent_path().parent_path() / "models" / name;
    const Checkpoint c =
        open_checkpoint(std::filesystem::exists(bundled) ? bundled : data / "ckpt" / name);
    return {c.config, load_weights(c, pool, {}, quantize),
            RopeTable(c.config.head_dim, c.config.rope_base, c.config.max_context)};
  }

  ThreadPool pool_;
  const kernels::KernelTable& kernels_;
  Model model_;
  KvCache cache_;
  Activations acts_;
};

/// `n` ids below `vocab` that follow from `seed`.
inline std::vector<TokenId> some_tokens(std::size_t n, std::int32_t vocab, std::uint32_t seed) {
  std::vector<TokenId> tokens(n);
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (TokenId& t : tokens) {
    state = state * 1664525U + 1013904223U;
    t = static_cast<TokenId>((state >> 8) % static_cast<std::uint32_t>(vocab));
  }
  return tokens;
}

}  // namespace openelm::test
