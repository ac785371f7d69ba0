#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include <openelm/error.h>

#include "base/utf8.h"

namespace openelm {
namespace {

std::vector<std::size_t> failure_function(std::string_view text) {
  std::vector<std::size_t> failure(text.size(), 0);
  std::size_t matched = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (matched > 0 && text[matched] != text[i]) matched = failure[matched - 1];
    if (text[matched] == text[i]) ++matched;
    failure[i] = matched;
  }
  return failure;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  automata_.reserve(stops.size());
  for (std::string& stop : stops) {
    if (stop.empty()) throw UsageError("a stop string must not be empty");
    if (find_invalid_utf8(stop)) throw UsageError("a stop string must be valid UTF-8");
    std::vector<std::size_t> failure = failure_function(stop);
    automata_.push_back({std::move(stop), std::move(failure)});
  }
}

void StopMatcher::Automaton::advance(char byte) {
  while (matched > 0 && text[matched] != byte) matched = failure[matched - 1];
  if (text[matched] == byte) ++matched;
}

std::string StopMatcher::push(std::string_view piece) {
  if (fired_) return {};
  std::size_t tail = 0;
  for (const char byte : piece) {
    held_.push_back(byte);
    tail = 0;
    for (Automaton& automaton : automata_) {
      automaton.advance(byte);
      const bool complete = automaton.matched == automaton.text.size();
      if (complete && (!fired_ || fired_->size() < automaton.text.size())) fired_ = automaton.text;
      tail = std::max(tail, automaton.matched);
    }
    if (fired_) {
      held_.resize(held_.size() - fired_->size());
      return std::exchange(held_, {});
    }
  }
  if (piece.empty()) return {};
  std::string certain = held_.substr(0, held_.size() - tail);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopMatcher::finish() { return fired_ ? std::string() : std::exchange(held_, {}); }

}  // namespace openelm
