#include "runtime/sequence_pool.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include <openelm/error.h>
#include <openelm/session.h>

#include "runtime/engine_impl.h"

namespace openelm {
namespace {

/// Rows of logits computed in one pass: 32 MB for 32,000 words.
constexpr std::int32_t kMaxLogitRows = 256;

/// The scan that calls `row(i, logits)`, which must outlive it.
template <typename RowOf>
LogitScan scan_by(RowOf& row) {
  return {[](void* context, std::size_t i, float* logits) noexcept {
            (*static_cast<RowOf*>(context))(i, logits);
          },
          &row};
}

std::int64_t padded(std::int32_t n) { return (n + kTileRows - 1) / kTileRows * kTileRows; }

}  // namespace

SequencePool::SequencePool(std::shared_ptr<const Engine> engine, const SequencePoolOptions& options)
    : engine_(std::move(engine)),
      options_(options),
      cache_(engine_->config(), options.kv_type, options.n_pages),
      acts_(engine_->config(), options.max_rows, options.context, engine_->threads()) {}

std::int32_t SequencePool::add() {
  const std::int32_t sequence = cache_.add_sequence();
  tokens_.resize(std::max(tokens_.size(), static_cast<std::size_t>(sequence) + 1));
  return sequence;
}

std::optional<std::int32_t> SequencePool::fork(std::int32_t sequence, std::int32_t length) {
  const std::optional<std::int32_t> child = cache_.fork(sequence, length);
  if (!child) return std::nullopt;
  tokens_.resize(std::max(tokens_.size(), static_cast<std::size_t>(*child) + 1));
  const std::span<const TokenId> shared = tokens(sequence).first(static_cast<std::size_t>(length));
  tokens_[static_cast<std::size_t>(*child)].assign(shared.begin(), shared.end());
  return child;
}

void SequencePool::remove(std::int32_t sequence) {
  cache_.remove_sequence(sequence);
  tokens_[static_cast<std::size_t>(sequence)] = {};
}

void SequencePool::rewind(std::int32_t sequence, std::int32_t length) {
  tokens_[static_cast<std::size_t>(sequence)].resize(static_cast<std::size_t>(length));
  cache_.shrink(sequence, length);
}

void SequencePool::require_valid(std::span<const TokenId> tokens, std::int64_t held) const {
  const std::int64_t total = held + static_cast<std::int64_t>(tokens.size());
  if (total > context()) {
    throw Error("context is full: " + std::to_string(total) + " tokens do not fit the context of " +
                std::to_string(context()) +
                (held > 0 ? " (" + std::to_string(held) + " are held already)" : ""));
  }
  const std::int32_t vocab = engine_->config().vocab_size;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab) {
      throw Error("token " + std::to_string(i) + ": id " + std::to_string(tokens[i]) +
                  " is outside the vocabulary of " + std::to_string(vocab));
    }
  }
}

void SequencePool::evaluate(std::span<const Work> work, const RowCallback& row,
                            const std::atomic<bool>* cancel) {
  append(work, {.row = row, .scans = false}, cancel);
}

void SequencePool::scan(std::span<const Work> work, const RowCallback& row,
                        const std::atomic<bool>* cancel) {
  append(work, {.row = row, .scans = true}, cancel);
}

void SequencePool::append(std::span<const Work> work, const Visit& visit,
                          const std::atomic<bool>* cancel) {
  for (const Work& w : work) require_valid(w.tokens, length(w.sequence));
  std::vector<std::int32_t> before;
  for (const Work& w : work) before.push_back(length(w.sequence));
  try {
    for (const Work& w : work) {
      auto& tokens = tokens_[static_cast<std::size_t>(w.sequence)];
      tokens.insert(tokens.end(), w.tokens.begin(), w.tokens.end());
      if (!cache_.grow(w.sequence, length(w.sequence))) {
        throw Error("the KV cache is full: its " + std::to_string(n_pages()) + " pages of " +
                    std::to_string(KvCache::kPageSize) + " positions are all in use");
      }
    }
    run_passes(work, visit, cancel);
  } catch (...) {
    for (std::size_t i = 0; i < work.size(); ++i) rewind(work[i].sequence, before[i]);
    throw;
  }
}

void SequencePool::run_passes(std::span<const Work> work, const Visit& visit,
                              const std::atomic<bool>* cancel) {
  const std::int32_t max_wanted = visit.scans ? max_rows() : kMaxLogitRows;
  std::vector<Row> rows;
  std::int32_t n_wanted = 0;
  const auto flush = [&] {
    pass(work, rows, visit, cancel);
    rows.clear();
    n_wanted = 0;
  };
  for (std::size_t item = 0; item < work.size(); ++item) {
    const std::span<const std::int32_t> wanted = work[item].wanted;
    std::size_t next = 0;
    const auto n = static_cast<std::int32_t>(work[item].tokens.size());
    for (std::int32_t i = 0; i < n; ++i) {
      const bool is_wanted = next < wanted.size() && wanted[next] == i;
      if (std::ssize(rows) == max_rows() || (is_wanted && n_wanted == max_wanted)) flush();
      rows.push_back({item, i, is_wanted});
      if (is_wanted) {
        ++next;
        ++n_wanted;
      }
    }
  }
  if (!rows.empty()) flush();
}

void SequencePool::pass(std::span<const Work> work, std::span<const Row> rows, const Visit& visit,
                        const std::atomic<bool>* cancel) {
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> sequences;
  std::vector<std::int32_t> wanted;
  for (const Row& r : rows) {
    const Work& w = work[r.item];
    if (r.wanted) wanted.push_back(static_cast<std::int32_t>(tokens.size()));
    tokens.push_back(w.tokens[static_cast<std::size_t>(r.index)]);
    positions.push_back(length(w.sequence) - static_cast<std::int32_t>(w.tokens.size()) + r.index);
    sequences.push_back(w.sequence);
  }
  const std::int32_t vocab = engine_->config().vocab_size;
  const std::int64_t stride = padded(vocab);
  const std::size_t kept =
      visit.scans ? std::min(wanted.size(), std::size_t{LogitScan::kRows}) : wanted.size();
  const std::size_t floats = kept * static_cast<std::size_t>(stride);
  if (logits_.size() < floats) logits_ = AlignedArray<float>(floats, "the logits");

  const Engine::Impl& e = engine_->impl();
  auto scan_row = [&](std::size_t place, const float* logits) {
    const Row& r = rows[static_cast<std::size_t>(wanted[place])];
    visit.row(r.item, r.index, {logits, static_cast<std::size_t>(vocab)});
  };
  const Batch batch{.tokens = tokens,
                    .positions = positions,
                    .sequences = sequences,
                    .wanted = wanted,
                    .logits = logits_.data(),
                    .logits_stride = stride,
                    .cancel = cancel,
                    .scan = visit.scans ? scan_by(scan_row) : LogitScan{}};
  if (!forward(e.context(), e.model, cache_, acts_, batch)) throw Interrupted();
  if (visit.scans) return;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Row& r = rows[static_cast<std::size_t>(wanted[i])];
    visit.row(
        r.item, r.index,
        {logits_.data() + static_cast<std::int64_t>(i) * stride, static_cast<std::size_t>(vocab)});
  }
}

bool all_finite(std::span<const float> logits) noexcept {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::uint32_t non_finite = 0;
  for (const float v : logits) {
    non_finite |=
        static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(v) & kExponent) == kExponent);
  }
  return non_finite == 0;
}

void require_finite(std::span<const float> logits, std::int32_t position, KvType kv_type) {
  if (all_finite(logits)) return;
  throw Error("the model's output is not finite at position " + std::to_string(position) +
              ": the weights hold NaN or infinity, or overflow " + to_string(kv_type) +
              " keys and values");
}

}  // namespace openelm
