#pragma once

namespace openelm::cli {

/// Keeps the modes of the terminal on standard input and gives them back: at the end of its life,
/// and when a signal ends or stops the program. While it lives, what is typed is neither shown nor
/// held back until a line is whole, so that keys pressed during an answer wait for the next
/// prompt. One at a time.
class TerminalModes {
 public:
  /// Standard input must be a terminal. Throws Error.
  TerminalModes();
  ~TerminalModes();
  TerminalModes(const TerminalModes&) = delete;
  TerminalModes& operator=(const TerminalModes&) = delete;

  /// No echo, no line editing by the terminal.
  void make_quiet() noexcept;

  /// The terminal marks pasted text as such, or no longer does.
  void mark_pastes(bool on) noexcept;

  /// The window changed its size, or the program goes on after a stop, since the last call.
  bool take_changed() noexcept;
};

/// Gives the terminal its modes back, if they are kept; may be called from a signal handler.
void restore_terminal() noexcept;

}  // namespace openelm::cli
