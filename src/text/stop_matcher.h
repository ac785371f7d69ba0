#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace openelm {

/// Watches a growing text for stop strings and lets through only what cannot belong to one.
///
/// The stop string that is completed by the earliest byte fires; of several completed by the same
/// byte, the longest, so that the text ends before all of them. Hence a stop string that is a
/// prefix of another always fires instead of it. What fires, and where, does not depend on how the
/// text is cut into pieces. Pieces of whole characters give whole characters.
class StopMatcher {
 public:
  /// Throws UsageError when one of `stops` is empty or not UTF-8. No stop strings at all is fine.
  explicit StopMatcher(std::vector<std::string> stops);

  /// The bytes that `piece` makes certain: all up to a tail that could still begin a stop string,
  /// or up to the stop string when one is complete. After that, nothing.
  std::string push(std::string_view piece);

  /// The text has ended: the tail held back, which turned out to be ordinary text.
  std::string finish();

  /// The stop string that fired, if one has.
  const std::optional<std::string>& fired() const noexcept { return fired_; }

 private:
  /// One stop string as a Knuth-Morris-Pratt automaton.
  struct Automaton {
    std::string text;
    std::vector<std::size_t> failure;  // of each prefix: its longest proper prefix that ends it too
    std::size_t matched = 0;           // bytes of `text` that end the text so far

    void advance(char byte);
  };

  std::vector<Automaton> automata_;
  std::string held_;
  std::optional<std::string> fired_;
};

}  // namespace openelm
