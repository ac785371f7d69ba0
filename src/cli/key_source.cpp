#include "cli/key_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <unistd.h>

#include <openelm/error.h>

#include "base/utf8.h"
#include "cli/wide_text.h"

namespace openelm::cli {
namespace {

// A signal may be handled on another thread, which does not end this one's waiting: so it looks at
// the flags now and then.
constexpr int kPollMilliseconds = 50;
constexpr std::size_t kLongestCharacter = 4;

}  // namespace

KeySource::Event KeySource::next(wchar_t& key, const std::atomic<bool>& interrupt) {
  while (true) {
    if (!pressed_.empty()) {
      key = pressed_.front();
      pressed_.pop_front();
      return Event::key;
    }
    if (interrupt) return Event::interrupted;
    if (modes_.take_changed()) return Event::changed;
    if (const std::optional<wchar_t> taken = take()) {
      key = *taken;
      return Event::key;
    }
    if (ended_) return Event::end;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, kPollMilliseconds) > 0) ended_ = !fill();
  }
}

void KeySource::press(std::wstring_view keys) {
  pressed_.insert(pressed_.begin(), keys.begin(), keys.end());
}

void KeySource::clear() {
  pressed_.clear();
  bytes_.clear();
}

std::optional<wchar_t> KeySource::take() {
  if (bytes_.empty()) return std::nullopt;
  // The shortest beginning that is a whole character, or cannot become one.
  std::size_t length = 1;
  const std::size_t limit = std::min(bytes_.size(), kLongestCharacter);
  while (length <= limit && complete_utf8_prefix(std::string_view(bytes_).substr(0, length)) == 0) {
    ++length;
  }
  if (length > limit) return std::nullopt;
  const wchar_t key = to_wide(std::string_view(bytes_).substr(0, length)).front();
  bytes_.erase(0, length);
  return key;
}

/// False at the end of the input: the terminal is gone.
bool KeySource::fill() {
  std::array<char, 4096> block;
  const ssize_t n = ::read(STDIN_FILENO, block.data(), block.size());
  if (n > 0) bytes_.append(block.data(), static_cast<std::size_t>(n));
  if (n >= 0) return n > 0;
  if (errno == EINTR || errno == EAGAIN) return true;
  if (errno == EIO) return false;
  throw Error(std::string("standard input: ") + std::strerror(errno));
}

}  // namespace openelm::cli
