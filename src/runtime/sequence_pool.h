#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <openelm/engine.h>

#include "base/aligned_buffer.h"
#include "model/activations.h"
#include "model/kv_cache.h"

namespace openelm {

struct SequencePoolOptions {
  std::int32_t context = 0;  ///< of each sequence; 1 to the model's own
  KvType kv_type = KvType::f32;
  std::int32_t n_pages = 0;   ///< of the KV cache, for all sequences
  std::int32_t max_rows = 0;  ///< tokens of one pass
};

/// Sequences of tokens that share a KV cache and are evaluated together.
///
/// What a sequence's logits are depends on its tokens alone: not on its neighbours in a pass, nor
/// on how its tokens are cut into passes, nor on whether it was forked or rewound, bit for bit.
class SequencePool {
 public:
  SequencePool(std::shared_ptr<const Engine> engine, const SequencePoolOptions& options);

  const Engine& engine() const noexcept { return *engine_; }
  std::int32_t context() const noexcept { return options_.context; }
  std::int32_t max_rows() const noexcept { return options_.max_rows; }
  std::int32_t n_pages() const noexcept { return options_.n_pages; }
  std::int32_t free_pages() const noexcept { return cache_.free_pages(); }
  std::int32_t held_pages(std::int32_t sequence) const noexcept {
    return static_cast<std::int32_t>(cache_.pages(sequence).size());
  }
  std::uint64_t kv_bytes() const noexcept { return cache_.bytes(); }

  /// A new, empty sequence; its number stays valid until it is removed.
  std::int32_t add();
  /// A new sequence that begins with the first `length` tokens of another, whose cache pages it
  /// shares. Nothing when there is no free page for the copy of a page in part.
  std::optional<std::int32_t> fork(std::int32_t sequence, std::int32_t length);
  void remove(std::int32_t sequence);

  std::span<const TokenId> tokens(std::int32_t sequence) const noexcept {
    return tokens_[static_cast<std::size_t>(sequence)];
  }
  std::int32_t length(std::int32_t sequence) const noexcept {
    return static_cast<std::int32_t>(tokens(sequence).size());
  }
  void rewind(std::int32_t sequence, std::int32_t length);

  /// Throws Error when `tokens` do not fit the context behind `held` others, or when one is outside
  /// the vocabulary.
  void require_valid(std::span<const TokenId> tokens, std::int64_t held) const;

  /// Tokens to append to one sequence, and those of them (ascending indices) whose logits are
  /// wanted.
  struct Work {
    std::int32_t sequence;
    std::span<const TokenId> tokens;
    std::span<const std::int32_t> wanted;
  };
  /// Logits after token `i` of work item `item`, [vocab_size], valid until the next pass.
  using RowCallback =
      std::function<void(std::size_t item, std::int32_t i, std::span<const float> logits)>;

  /// Appends and evaluates, in as many passes as max_rows and the memory for logits make it, and
  /// calls `row` for the wanted tokens in order. No sequence may occur twice. Throws Error when
  /// tokens do not fit a sequence's context or are outside the vocabulary or pages run out, and
  /// Interrupted when `cancel` became true; after a throw, also of `row`, all sequences hold what
  /// they held.
  void evaluate(std::span<const Work> work, const RowCallback& row,
                const std::atomic<bool>* cancel = nullptr);

  /// As evaluate, for many wanted rows: they are looked at in parallel and not kept, so that they
  /// take no more passes than the tokens do. `row` is called on the engine's threads, for several
  /// rows at once; it must not throw.
  void scan(std::span<const Work> work, const RowCallback& row,
            const std::atomic<bool>* cancel = nullptr);

 private:
  /// What is done with the wanted rows.
  struct Visit {
    const RowCallback& row;
    bool scans;  // in parallel, while they are there
  };

  /// A token's place in a pass.
  struct Row {
    std::size_t item;
    std::int32_t index;  // among the item's tokens
    bool wanted;
  };

  void append(std::span<const Work> work, const Visit& visit, const std::atomic<bool>* cancel);
  void run_passes(std::span<const Work> work, const Visit& visit, const std::atomic<bool>* cancel);
  void pass(std::span<const Work> work, std::span<const Row> rows, const Visit& visit,
            const std::atomic<bool>* cancel);

  std::shared_ptr<const Engine> engine_;
  SequencePoolOptions options_;
  KvCache cache_;
  Activations acts_;
  std::vector<std::vector<TokenId>> tokens_;  // by sequence number
  AlignedArray<float> logits_;
};

/// No logit is NaN or infinite.
bool all_finite(std::span<const float> logits) noexcept;

/// Throws Error, naming the position, when a logit is NaN or infinite.
void require_finite(std::span<const float> logits, std::int32_t position, KvType kv_type);

}  // namespace openelm
