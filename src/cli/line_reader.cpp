#include "cli/line_reader.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <unistd.h>

#include <openelm/error.h>

#include "base/utf8.h"

namespace openelm::cli {
namespace {

// A signal may be handled on another thread, which does not end this one's waiting: so it looks at
// the flag now and then.
constexpr int kPollMilliseconds = 100;

bool wait_for_input() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, kPollMilliseconds) > 0;
}

}  // namespace

LineReader::Result LineReader::read(std::string& line, const std::atomic<bool>& interrupt) {
  while (true) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      take(end, line);
      buffer_.erase(0, 1);
      return Result::line;
    }
    if (ended_ && buffer_.empty()) return Result::end;
    if (ended_) {
      take(buffer_.size(), line);
      return Result::line;
    }
    if (fill(interrupt) == Result::interrupted) {
      buffer_.clear();
      return Result::interrupted;
    }
  }
}

LineReader::Result LineReader::fill(const std::atomic<bool>& interrupt) {
  while (true) {
    if (interrupt) return Result::interrupted;
    if (!wait_for_input()) continue;
    std::array<char, 4096> block;
    const ssize_t n = ::read(STDIN_FILENO, block.data(), block.size());
    if (n > 0) {
      buffer_.append(block.data(), static_cast<std::size_t>(n));
      return Result::line;
    }
    if (n == 0) {
      ended_ = true;
      return Result::end;
    }
    if (errno != EINTR && errno != EAGAIN) {
      throw Error(std::string("standard input: ") + std::strerror(errno));
    }
  }
}

void LineReader::take(std::size_t length, std::string& line) {
  line.assign(buffer_, 0, length);
  buffer_.erase(0, length);
  if (count_++ == 0) line = std::string(drop_byte_order_mark(line));
  if (line.ends_with('\r')) line.pop_back();
}

}  // namespace openelm::cli
