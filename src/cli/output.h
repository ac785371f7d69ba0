#pragma once

#include <exception>
#include <string_view>

namespace openelm::cli {

/// The reader of standard output has gone away (`| head`): the program ends quietly, with 0.
class OutputClosed : public std::exception {
 public:
  const char* what() const noexcept override { return "standard output was closed"; }
};

/// Standard output, unbuffered, every write checked: a full disk is an Error, a closed pipe
/// OutputClosed. Carries results and nothing else.
class Output {
 public:
  Output();

  void write(std::string_view bytes);

  /// Writes `bytes` and a line end.
  void line(std::string_view bytes);

  /// On a terminal: ends an unfinished last line, so that the shell's prompt stands on its own.
  void end_line_on_terminal();

  bool is_terminal() const noexcept { return terminal_; }

  /// The last byte written was a line end, or none was written.
  bool at_line_start() const noexcept { return at_line_start_; }

  /// Closes the descriptor, since some file systems report a full disk only then.
  void close();

 private:
  bool terminal_;
  bool at_line_start_ = true;
};

}  // namespace openelm::cli
