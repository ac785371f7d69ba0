#pragma once

#include <atomic>
#include <string>

namespace openelm::cli {

/// Lines of standard input, which Ctrl-C can interrupt while it waits. The line end, LF or CRLF, is
/// not part of a line; the last one need not have any. A leading byte-order mark is dropped.
class LineReader {
 public:
  enum class Result { line, end, interrupted };

  /// Waits for the next line. `interrupt` is the flag that the signal handler sets.
  Result read(std::string& line, const std::atomic<bool>& interrupt);

  /// Lines given out so far.
  std::size_t count() const noexcept { return count_; }

 private:
  Result fill(const std::atomic<bool>& interrupt);
  void take(std::size_t length, std::string& line);

  std::string buffer_;
  bool ended_ = false;
  std::size_t count_ = 0;
};

}  // namespace openelm::cli
