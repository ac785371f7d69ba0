#pragma once

#include <cstddef>
#include <span>

#include <openelm/config.h>

namespace openelm {

/// Sees every scored row of logits while it is there.
class LogitObserver {
 public:
  virtual ~LogitObserver() = default;

  /// Before all others: passes have at most so many scored rows.
  virtual void begin(std::size_t max_rows) = 0;

  /// Row `place` of the pass, whose next token is `target`; called for several rows at once.
  virtual void row(std::size_t place, TokenId target, std::span<const float> logits,
                   double log_sum) noexcept = 0;

  /// All rows of a pass are there; called on the evaluating thread. Places ascend in the order of
  /// the text, and so do passes.
  virtual void passed(std::size_t n_rows) = 0;

 protected:
  LogitObserver() = default;
};

}  // namespace openelm
