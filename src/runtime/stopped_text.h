#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openelm/generation.h>

#include "text/stop_matcher.h"

namespace openelm {

/// Growing text up to its first stop string: given to a callback as it becomes certain, and kept.
class StoppedText {
 public:
  /// `on_text` may be empty, and must outlive the object.
  StoppedText(const std::vector<std::string>& stops, const TextCallback& on_text)
      : stops_(stops), on_text_(on_text) {}

  /// False when the callback asks to end.
  bool push(std::string_view piece) { return give_out(stops_.push(piece)); }

  /// Gives out `rest` and what was held back, unless the callback wants no more.
  void finish(std::string_view rest = {}) {
    if (refused_) return;
    const std::string certain = stops_.push(rest);
    give_out(certain + stops_.finish());
  }

  const std::optional<std::string>& stop() const { return stops_.fired(); }
  std::string take() { return std::move(text_); }

 private:
  bool give_out(const std::string& certain) {
    text_ += certain;
    if (!certain.empty() && on_text_) refused_ = !on_text_(certain);
    return !refused_;
  }

  StopMatcher stops_;
  const TextCallback& on_text_;
  std::string text_;
  bool refused_ = false;
};

}  // namespace openelm
