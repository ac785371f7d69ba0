#pragma once

#include <atomic>

namespace openelm::cli {

/// From now on Ctrl-C (SIGINT) ends the program at once with 130, except within an
/// InterruptScope; a closed pipe is an error of write() and not a signal.
void install_signal_handlers();

/// While it lives, Ctrl-C raises a flag that a generation looks at. Presses beyond `patience` that
/// nobody has taken note of end the program at once.
class InterruptScope {
 public:
  explicit InterruptScope(int patience);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  const std::atomic<bool>& requested() const noexcept;

  /// Takes note of the presses so far.
  void reset() noexcept;
};

/// While it lives, a mapped file that became shorter (SIGBUS) ends the program with one line on
/// stderr that names `what`, and 1.
class MappedFileGuard {
 public:
  explicit MappedFileGuard(const char* what);
  ~MappedFileGuard();
  MappedFileGuard(const MappedFileGuard&) = delete;
  MappedFileGuard& operator=(const MappedFileGuard&) = delete;
};

}  // namespace openelm::cli
