#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <openelm/batch.h>

#include "runtime/generation_state.h"
#include "runtime/sequence_pool.h"

namespace openelm {

/// Continuous batching: which requests are in the next pass, and with which of their tokens.
///
/// A request that is begun holds a slot until it ends. Its pages are promised to it in full, so
/// that no sequence ever has to be given up for another one. A slot whose prompt begins like that
/// of an earlier one waits until that beginning is evaluated, and shares it. Sequences that have
/// ended stay for others to share until their pages are needed.
class Scheduler {
 public:
  /// All must outlive the object; `pool` is empty and has pages for one full context at least.
  Scheduler(SequencePool& pool, const Tokenizer* tokenizer, KvType kv_type, std::int32_t parallel,
            const BatchHooks& hooks, const std::atomic<bool>* cancel);

  /// Until there are no more requests, or the batch is ended.
  BatchStatistics run();

 private:
  /// A request that has begun.
  struct Slot {
    BatchRequest request;
    GenerationState generation;
    std::int32_t promised_pages;           // that its sequence may come to hold
    std::optional<std::int32_t> sequence;  // none while it waits for a beginning to share
    std::int32_t last_row = 0;             // index of the last token of its part of a pass
    std::optional<std::string> error;
  };
  using Slots = std::vector<std::unique_ptr<Slot>>;

  /// A sequence whose first `length` tokens can be shared.
  struct Prefix {
    std::int32_t sequence;
    std::int32_t length;
  };

  void admit();
  bool begin(BatchRequest& request);
  bool make_room(std::int32_t n_pages);
  void assign_sequences();
  Prefix longest_held(const Slot& slot) const;
  bool should_wait(Slots::const_iterator slot, std::int32_t held) const;
  void pass();
  std::span<const TokenId> next_tokens(const Slot& slot, std::int32_t budget) const;
  void choose(Slot& slot, std::span<const float> logits);
  void collect();
  void retire(Slot& slot);
  void deliver(BatchAnswer answer);
  std::int32_t evaluated(const Slot& slot) const;
  bool in_prompt(const Slot& slot) const;

  SequencePool& pool_;
  const Tokenizer* tokenizer_;
  KvType kv_type_;
  std::size_t parallel_;
  const BatchHooks& hooks_;
  const std::atomic<bool>* cancel_;
  const TextCallback no_callback_;
  bool at_end_ = false;                // no more requests come
  std::optional<BatchRequest> next_;   // the one that waits for pages
  Slots slots_;                        // in the order they were begun
  std::deque<std::int32_t> finished_;  // sequences kept for sharing, the least recently used first
  BatchStatistics statistics_;
};

}  // namespace openelm
