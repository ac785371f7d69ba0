#pragma once

#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "cli/terminal_modes.h"

namespace openelm::cli {

/// Characters from the keyboard, UTF-8 decoded whatever the locale is, mixed with keys that the
/// program presses itself.
class KeySource {
 public:
  enum class Event { key, end, interrupted, changed };

  explicit KeySource(TerminalModes& modes) : modes_(modes) {}

  /// Waits for the next key. `changed`: the screen must be drawn anew.
  Event next(wchar_t& key, const std::atomic<bool>& interrupt);

  /// Presses keys before those that wait.
  void press(std::wstring_view keys);

  /// Forgets the keys that wait here.
  void clear();

 private:
  std::optional<wchar_t> take();
  bool fill();

  TerminalModes& modes_;
  std::deque<wchar_t> pressed_;
  std::string bytes_;
  bool ended_ = false;
};

}  // namespace openelm::cli
