#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <openelm/error.h>
#include <openelm/session.h>

#include "base/aligned_buffer.h"
#include "runtime/engine_impl.h"

namespace openelm {
namespace {

/// Rows of logits computed in one pass when every token's are wanted: 16 MB for 32,000 words.
constexpr std::int32_t kMaxLogitRows = 128;

std::int64_t padded(std::int32_t n) { return (n + kTileRows - 1) / kTileRows * kTileRows; }

bool all_finite(std::span<const float> values) noexcept {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::uint32_t non_finite = 0;
  for (const float v : values) {
    non_finite |=
        static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(v) & kExponent) == kExponent);
  }
  return non_finite == 0;
}

std::int32_t checked_context(const ModelConfig& config, std::int32_t wanted) {
  if (wanted < 0 || wanted > config.max_context) {
    throw UsageError("context: expected 1 to " + std::to_string(config.max_context) +
                     " (the model's own), got " + std::to_string(wanted));
  }
  return wanted == 0 ? config.max_context : wanted;
}

std::int32_t checked_chunk(std::int32_t chunk, std::int32_t context) {
  if (chunk < 1) throw UsageError("chunk: expected 1 or more, got " + std::to_string(chunk));
  return std::min({chunk, context, 512});
}

}  // namespace

struct Session::Impl {
  Impl(std::shared_ptr<const Engine> the_engine, const SessionOptions& options)
      : engine(std::move(the_engine)),
        context(checked_context(engine->config(), options.context)),
        chunk(checked_chunk(options.chunk, context)),
        cache(engine->config(), options.kv_type,
              (context + KvCache::kPageSize - 1) / KvCache::kPageSize),
        acts(engine->config(), chunk, context, engine->threads()),
        sequence(cache.add_sequence()) {
    tokens.reserve(static_cast<std::size_t>(context));
  }

  std::int32_t length() const { return static_cast<std::int32_t>(tokens.size()); }

  void check(std::span<const TokenId> more) const {
    const auto n = static_cast<std::int64_t>(more.size());
    if (length() + n > context) {
      throw Error("context is full: " + std::to_string(length() + n) +
                  " tokens do not fit the context of " + std::to_string(context) +
                  (length() > 0 ? " (" + std::to_string(length()) + " are held already)" : ""));
    }
    const std::int32_t vocab = engine->config().vocab_size;
    for (std::size_t i = 0; i < more.size(); ++i) {
      if (more[i] < 0 || more[i] >= vocab) {
        throw Error("token " + std::to_string(i) + ": id " + std::to_string(more[i]) +
                    " is outside the vocabulary of " + std::to_string(vocab));
      }
    }
  }

  /// Evaluates tokens already appended from `begin` on, in one pass; `wanted` are rows of the pass.
  void pass(std::int32_t begin, std::int32_t n, std::span<const std::int32_t> wanted) {
    std::vector<std::int32_t> positions(static_cast<std::size_t>(n));
    std::iota(positions.begin(), positions.end(), begin);
    const std::vector<std::int32_t> sequences(positions.size(), sequence);
    const std::int64_t stride = padded(engine->config().vocab_size);
    if (logits.size() < wanted.size() * static_cast<std::size_t>(stride)) {
      logits = AlignedArray<float>(wanted.size() * static_cast<std::size_t>(stride), "the logits");
    }
    const Batch batch{.tokens = std::span(tokens).subspan(static_cast<std::size_t>(begin),
                                                          static_cast<std::size_t>(n)),
                      .positions = positions,
                      .sequences = sequences,
                      .wanted = wanted,
                      .logits = logits.data(),
                      .logits_stride = stride,
                      .cancel = cancel};
    const Engine::Impl& e = engine->impl();
    if (!forward(e.context(), e.model, cache, acts, batch)) throw Interrupted();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!all_finite(row(i))) {
        throw Error("the model's output is not finite at position " +
                    std::to_string(begin + wanted[i]) +
                    ": the weights hold NaN or infinity, or overflow " + to_string(cache.type()) +
                    " keys and values");
      }
    }
  }

  std::span<const float> row(std::size_t i) const {
    const auto vocab = static_cast<std::size_t>(engine->config().vocab_size);
    return {logits.data() + i * static_cast<std::size_t>(padded(engine->config().vocab_size)),
            vocab};
  }

  void rewind(std::int32_t n) {
    tokens.resize(static_cast<std::size_t>(n));
    cache.shrink(sequence, n);
  }

  std::shared_ptr<const Engine> engine;
  std::int32_t context;
  std::int32_t chunk;
  KvCache cache;
  Activations acts;
  std::int32_t sequence;
  std::vector<TokenId> tokens;
  AlignedArray<float> logits;
  const std::atomic<bool>* cancel = nullptr;
};

Session::Session(std::shared_ptr<const Engine> engine, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(engine), options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Engine& Session::engine() const noexcept { return *impl_->engine; }
std::int32_t Session::context() const noexcept { return impl_->context; }
std::span<const TokenId> Session::tokens() const noexcept { return impl_->tokens; }
std::uint64_t Session::kv_bytes() const noexcept { return impl_->cache.bytes(); }
void Session::set_cancel(const std::atomic<bool>* cancel) noexcept { impl_->cancel = cancel; }

std::span<const float> Session::evaluate(std::span<const TokenId> tokens) {
  if (tokens.empty()) throw UsageError("no tokens to evaluate");
  const auto last = static_cast<std::int32_t>(tokens.size()) - 1;
  evaluate(tokens, std::span(&last, 1), {});
  return impl_->row(0);
}

void Session::evaluate(std::span<const TokenId> tokens, std::span<const std::int32_t> wanted,
                       const RowCallback& row) {
  Impl& s = *impl_;
  s.check(tokens);
  const std::int32_t start = s.length();
  const std::int32_t end = start + static_cast<std::int32_t>(tokens.size());
  try {
    s.tokens.insert(s.tokens.end(), tokens.begin(), tokens.end());
    s.cache.grow(s.sequence, end);   // cannot fail: the cache has pages for the whole context
    std::vector<std::int32_t> rows;  // wanted rows of one pass
    std::size_t next = 0;            // first of `wanted` not yet computed
    for (std::int32_t begin = start; begin < end;) {
      const std::int32_t n = std::min(end - begin, wanted.size() - next > kMaxLogitRows
                                                       ? std::min(s.chunk, kMaxLogitRows)
                                                       : s.chunk);
      const std::size_t first = next;
      rows.clear();
      for (; next < wanted.size() && wanted[next] + start < begin + n; ++next) {
        rows.push_back(wanted[next] + start - begin);
      }
      s.pass(begin, n, rows);
      for (std::size_t i = 0; row && i < rows.size(); ++i) {
        row(static_cast<std::size_t>(wanted[first + i]), s.row(i));
      }
      begin += n;
    }
  } catch (...) {
    s.rewind(start);
    throw;
  }
}

void Session::rewind(std::int32_t length) {
  if (length < 0 || length > impl_->length()) {
    throw UsageError("rewind: expected 0 to " + std::to_string(impl_->length()) + ", got " +
                     std::to_string(length));
  }
  impl_->rewind(length);
}

}  // namespace openelm
