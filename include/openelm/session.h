#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <openelm/engine.h>

namespace openelm {

struct SessionOptions {
  /// Positions to make room for; 0: the model's own. More than the model's own is a UsageError.
  std::int32_t context = 0;
  KvType kv_type = KvType::f32;
  /// Tokens evaluated in one pass. The logits do not depend on it.
  std::int32_t chunk = 512;
};

/// One sequence of tokens and its key/value cache.
class Session {
 public:
  explicit Session(std::shared_ptr<const Engine> engine, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Engine& engine() const noexcept;
  std::int32_t context() const noexcept;
  /// Tokens held, oldest first.
  std::span<const TokenId> tokens() const noexcept;
  std::int32_t length() const noexcept { return static_cast<std::int32_t>(tokens().size()); }
  /// Bytes reserved for keys and values at full context.
  std::uint64_t kv_bytes() const noexcept;

  /// Appends `tokens` and returns the logits after the last one, [vocab_size], valid until the next
  /// call. Throws Error when they do not fit the context, when an id is outside the vocabulary,
  /// when a logit is not finite (naming the position), and Interrupted when `cancel` became true.
  /// After a throw the session holds what it held before.
  std::span<const float> evaluate(std::span<const TokenId> tokens);

  /// As above, and calls `row(i, logits)` for each token i of `wanted` (ascending indices into
  /// `tokens`), in order.
  using RowCallback = std::function<void(std::size_t i, std::span<const float> logits)>;
  void evaluate(std::span<const TokenId> tokens, std::span<const std::int32_t> wanted,
                const RowCallback& row);

  /// Forgets all tokens after the first `length`.
  void rewind(std::int32_t length);

  /// Checked once a layer while a pass runs; may be set from a signal handler. Null: never.
  void set_cancel(const std::atomic<bool>* cancel) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Thrown by evaluate() when its cancel flag was set.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace openelm
