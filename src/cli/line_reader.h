#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <string>

namespace openelm::cli {

/// Lines of a file or of standard input, which an interrupt ends while it waits. The line end, LF
/// or CRLF, is not part of a line; the last one need not have any. A leading byte-order mark is
/// dropped.
class LineReader {
 public:
  enum class Result { line, end, interrupted, too_long };

  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  /// Reads standard input.
  LineReader();
  /// Reads a descriptor that stays open as long as the object lives. `name` is what messages call
  /// it; of a line of more than `longest` bytes no more than that is ever held.
  LineReader(int descriptor, std::string name, std::size_t longest = kNoLimit);

  /// Waits for the next line; too_long stands for one that was passed over. `interrupt` may be set
  /// by a signal handler or another thread. Throws Error when reading fails.
  Result read(std::string& line, const std::atomic<bool>& interrupt);

  /// Lines given out or passed over so far.
  std::size_t count() const noexcept { return count_; }

 private:
  Result fill(const std::atomic<bool>& interrupt);
  Result take(std::size_t length, std::size_t end, std::string& line);

  int descriptor_;
  std::string name_;
  std::size_t longest_;
  std::string buffer_;
  std::size_t start_ = 0;     // of the next line in buffer_
  std::size_t searched_ = 0;  // no line end before here
  bool passing_over_ = false;
  bool ended_ = false;
  std::size_t count_ = 0;
};

}  // namespace openelm::cli
