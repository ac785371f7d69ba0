#include "cli/line_reader.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include <openelm/error.h>

#include "base/utf8.h"

namespace openelm::cli {
namespace {

// A signal may be handled on another thread, which does not end this one's waiting: so it looks at
// the flag now and then.
constexpr int kPollMilliseconds = 100;

bool wait_for_input(int descriptor) {
  pollfd input{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, kPollMilliseconds) > 0;
}

}  // namespace

LineReader::LineReader() : LineReader(STDIN_FILENO, "standard input") {}

LineReader::LineReader(int descriptor, std::string name, std::size_t longest)
    : descriptor_(descriptor), name_(std::move(name)), longest_(longest) {}

LineReader::Result LineReader::read(std::string& line, const std::atomic<bool>& interrupt) {
  while (true) {
    const std::size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos) return take(end - start_, end + 1, line);
    searched_ = buffer_.size();
    if (ended_ && start_ == buffer_.size() && !passing_over_) return Result::end;
    if (ended_) return take(buffer_.size() - start_, buffer_.size(), line);
    if (buffer_.size() - start_ > longest_) {
      passing_over_ = true;
      buffer_.clear();
      start_ = searched_ = 0;
    }
    if (fill(interrupt) == Result::interrupted) {
      buffer_.clear();
      start_ = searched_ = 0;
      return Result::interrupted;
    }
  }
}

LineReader::Result LineReader::fill(const std::atomic<bool>& interrupt) {
  buffer_.erase(0, start_);
  searched_ -= start_;
  start_ = 0;
  while (true) {
    if (interrupt) return Result::interrupted;
    if (!wait_for_input(descriptor_)) continue;
    std::array<char, 65536> block;
    const ssize_t n = ::read(descriptor_, block.data(), block.size());
    if (n > 0) {
      buffer_.append(block.data(), static_cast<std::size_t>(n));
      return Result::line;
    }
    if (n == 0) {
      ended_ = true;
      return Result::end;
    }
    if (errno != EINTR && errno != EAGAIN) {
      throw Error(name_ + ": " + std::strerror(errno));
    }
  }
}

/// The next `length` bytes as a line; the one after it begins at `end`.
LineReader::Result LineReader::take(std::size_t length, std::size_t end, std::string& line) {
  line.assign(buffer_, start_, length);
  start_ = searched_ = end;
  if (count_++ == 0) line = std::string(drop_byte_order_mark(line));
  if (line.ends_with('\r')) line.pop_back();
  const bool too_long = std::exchange(passing_over_, false) || line.size() > longest_;
  return too_long ? Result::too_long : Result::line;
}

}  // namespace openelm::cli
