#include "runtime/window_cutter.h"

#include <algorithm>
#include <string>

#include <openelm/error.h>

namespace openelm {
namespace {

/// What llama-perplexity asks for before it gives a figure.
constexpr std::int64_t kLlamaCppWindows = 2;

/// Fewest tokens of a window that scores one.
std::int32_t least_context(ScoringRule rule) {
  switch (rule) {
    case ScoringRule::openelm:
      return 2;
    case ScoringRule::llama_cpp:
      return 3;
    case ScoringRule::lm_eval:
      break;
  }
  return 1;
}

}  // namespace

WindowOptions resolve(WindowOptions options, std::int32_t max_context) {
  if (options.context == 0) options.context = max_context;
  const std::int32_t least = least_context(options.rule);
  if (options.context < least || options.context > max_context) {
    throw UsageError("context: expected " + std::to_string(least) + " to " +
                     std::to_string(max_context) + " (the model's own), got " +
                     std::to_string(options.context));
  }
  if (options.rule != ScoringRule::openelm) {
    if (options.stride != 0) throw UsageError("stride: only the rule openelm has one");
    if (options.bos != BosRule::window) {
      throw UsageError("bos: only the rule openelm leaves a choice");
    }
    options.stride = options.context;
    return options;
  }
  const std::int32_t most = options.context - (options.bos == BosRule::window ? 1 : 0);
  if (options.stride < 0 || options.stride > most) {
    throw UsageError("stride: expected 1 to " + std::to_string(most) +
                     ", the tokens of the text that a window of " +
                     std::to_string(options.context) + " holds, got " +
                     std::to_string(options.stride));
  }
  if (options.stride == 0) options.stride = most;
  return options;
}

WindowCutter::WindowCutter(const WindowOptions& options, TokenId bos)
    : options_(options), bos_(bos), n_bos_(options.bos == BosRule::none ? 0 : 1) {
  if (n_bos_ == 1) held_.push_back(bos_);
}

void WindowCutter::push(std::span<const TokenId> tokens) {
  held_.insert(held_.end(), tokens.begin(), tokens.end());
}

std::optional<Window> WindowCutter::next() {
  switch (options_.rule) {
    case ScoringRule::openelm:
      return next_openelm();
    case ScoringRule::llama_cpp:
      return next_llama_cpp();
    case ScoringRule::lm_eval:
      break;
  }
  return next_lm_eval();
}

std::optional<Window> WindowCutter::next_openelm() {
  while (!done_) {
    const std::int64_t begin = begin_;
    const std::int64_t end = std::min(begin + options_.context, size());
    // Whether a window is the last one is known when a token follows, or none can.
    if (!finished_ && size() <= begin + options_.context) return std::nullopt;
    const std::int64_t first = std::max(begin + 1, next_target_);
    done_ = end == size();
    next_target_ = std::max(next_target_, end);
    begin_ += options_.stride;
    if (first >= end) continue;
    Window window = cut(begin, first, end, options_.bos == BosRule::window);
    drop_before(begin_);
    return window;
  }
  return std::nullopt;
}

std::optional<Window> WindowCutter::next_llama_cpp() {
  const std::int64_t context = options_.context;
  if (begin_ == 0 && size() < kLlamaCppWindows * context) {
    if (!finished_) return std::nullopt;
    throw Error("too short: " + std::to_string(size()) +
                " tokens with BOS, and the rule llama.cpp needs two windows, " +
                std::to_string(kLlamaCppWindows * context));
  }
  if (size() < begin_ + context) return std::nullopt;
  const std::int64_t begin = begin_;
  begin_ += context;
  Window window = cut(begin, begin + context / 2 + 1, begin + context, true);
  drop_before(begin_);
  return window;
}

std::optional<Window> WindowCutter::next_lm_eval() {
  const std::int64_t context = options_.context;
  const std::int64_t end = std::min(next_target_ + context, size());
  if (end < next_target_ + context && !finished_) return std::nullopt;
  if (next_target_ >= end) return std::nullopt;
  // The last window has fewer tokens to score and more before them.
  const std::int64_t begin = std::max<std::int64_t>(0, end - 1 - context);
  Window window = cut(begin, next_target_, end, false);
  next_target_ = end;
  drop_before(end - 1 - context);
  return window;
}

Window WindowCutter::cut(std::int64_t begin, std::int64_t first, std::int64_t end,
                         bool bos_in_front) const {
  Window window;
  window.tokens.assign(held_.begin() + (begin - dropped_), held_.begin() + (end - dropped_));
  if (bos_in_front) window.tokens.front() = bos_;
  window.first_target = static_cast<std::size_t>(first - begin);
  window.first_index = first - n_bos_;
  return window;
}

void WindowCutter::drop_before(std::int64_t position) {
  // Not for every window, since what follows has to move.
  const std::int64_t n = std::min(position, size()) - dropped_;
  if (n < static_cast<std::int64_t>(held_.size()) / 2) return;
  held_.erase(held_.begin(), held_.begin() + n);
  dropped_ += n;
}

}  // namespace openelm
