#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <openelm/evaluation.h>

namespace openelm {

/// Tokens that are evaluated from position 0, and those of them that are scored there.
struct Window {
  std::vector<TokenId> tokens;   ///< the last one is only scored, not evaluated
  std::size_t first_target = 0;  ///< tokens[first_target ..] are scored; at least 1
  std::int64_t first_index = 0;  ///< of tokens[first_target], in the text
};

/// Options with defaults filled in. Throws UsageError unless they fit the model and each other.
WindowOptions resolve(WindowOptions options, std::int32_t max_context);

/// Cuts a text that comes token by token into windows (see ScoringRule), and holds no more of it
/// than the next window needs.
class WindowCutter {
 public:
  /// `options` are resolved.
  WindowCutter(const WindowOptions& options, TokenId bos);

  void push(std::span<const TokenId> tokens);
  void finish() noexcept { finished_ = true; }

  /// The next window with a token to score. Nothing: more tokens are needed, or, after finish(),
  /// there are no more. Throws Error when a finished text is too short for the rule.
  std::optional<Window> next();

  std::int64_t text_tokens() const noexcept { return size() - n_bos_; }

 private:
  std::int64_t size() const noexcept { return dropped_ + static_cast<std::int64_t>(held_.size()); }
  std::optional<Window> next_openelm();
  std::optional<Window> next_llama_cpp();
  std::optional<Window> next_lm_eval();
  Window cut(std::int64_t begin, std::int64_t first, std::int64_t end, bool bos_in_front) const;
  void drop_before(std::int64_t position);

  WindowOptions options_;
  TokenId bos_;
  std::int64_t n_bos_;         // in front of the text: 0 or 1
  std::vector<TokenId> held_;  // the sequence, BOS included, from position dropped_ on
  std::int64_t dropped_ = 0;
  std::int64_t begin_ = 0;  // of the next window
  std::int64_t next_target_ = 1;
  bool finished_ = false;
  bool done_ = false;
};

}  // namespace openelm
