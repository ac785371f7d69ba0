#include <algorithm>
#include <string>
#include <utility>

#include <openelm/error.h>
#include <openelm/session.h>

#include "runtime/checked_context.h"
#include "runtime/sequence_pool.h"

namespace openelm {

std::int32_t checked_context(const ModelConfig& config, std::int32_t wanted) {
  if (wanted < 0 || wanted > config.max_context) {
    throw UsageError("context: expected 1 to " + std::to_string(config.max_context) +
                     " (the model's own), got " + std::to_string(wanted));
  }
  return wanted == 0 ? config.max_context : wanted;
}

namespace {

SequencePoolOptions pool_options(const ModelConfig& config, const SessionOptions& options) {
  const std::int32_t context = checked_context(config, options.context);
  if (options.chunk < 1) {
    throw UsageError("chunk: expected 1 or more, got " + std::to_string(options.chunk));
  }
  return {.context = context,
          .kv_type = options.kv_type,
          .n_pages = kv_pages(context),
          .max_rows = std::min({options.chunk, context, 512})};
}

}  // namespace

/// A pool with a single sequence.
struct Session::Impl {
  Impl(std::shared_ptr<const Engine> engine, const SessionOptions& options)
      : kv_type(options.kv_type),
        pool(engine, pool_options(engine->config(), options)),
        sequence(pool.add()) {}

  KvType kv_type;
  SequencePool pool;
  std::int32_t sequence;
  const std::atomic<bool>* cancel = nullptr;
};

Session::Session(std::shared_ptr<const Engine> engine, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(std::move(engine), options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Engine& Session::engine() const noexcept { return impl_->pool.engine(); }
std::int32_t Session::context() const noexcept { return impl_->pool.context(); }
std::span<const TokenId> Session::tokens() const noexcept {
  return impl_->pool.tokens(impl_->sequence);
}
std::uint64_t Session::kv_bytes() const noexcept { return impl_->pool.kv_bytes(); }
void Session::set_cancel(const std::atomic<bool>* cancel) noexcept { impl_->cancel = cancel; }

std::span<const float> Session::evaluate(std::span<const TokenId> tokens) {
  if (tokens.empty()) throw UsageError("no tokens to evaluate");
  const auto last = static_cast<std::int32_t>(tokens.size()) - 1;
  std::span<const float> result;
  // The pool's logits stay in place until its next pass.
  evaluate(tokens, std::span(&last, 1), [&](std::size_t, auto logits) { result = logits; });
  return result;
}

void Session::evaluate(std::span<const TokenId> tokens, std::span<const std::int32_t> wanted,
                       const RowCallback& row) {
  Impl& s = *impl_;
  const std::int32_t start = length();
  const SequencePool::Work work{s.sequence, tokens, wanted};
  s.pool.evaluate(
      {&work, 1},
      [&](std::size_t, std::int32_t i, std::span<const float> logits) {
        require_finite(logits, start + i, s.kv_type);
        if (row) row(static_cast<std::size_t>(i), logits);
      },
      s.cancel);
}

void Session::rewind(std::int32_t length) {
  if (length < 0 || length > this->length()) {
    throw UsageError("rewind: expected 0 to " + std::to_string(this->length()) + ", got " +
                     std::to_string(length));
  }
  impl_->pool.rewind(impl_->sequence, length);
}

}  // namespace openelm
