#include "cli/progress.h"

#include <cstdlib>
#include <iostream>
#include <string_view>

#include <unistd.h>

namespace openelm::cli {
namespace {

constexpr std::chrono::milliseconds kDelay{300};
constexpr std::chrono::milliseconds kInterval{100};
constexpr std::uint64_t kWidth = 30;

bool is_drawable() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(std::string title, bool quiet)
    : title_(std::move(title)), enabled_(!quiet && is_drawable()), next_(Clock::now() + kDelay) {}

Progress::~Progress() {
  if (drawn_) std::cerr << "\r\x1b[K" << std::flush;
}

void Progress::show(std::uint64_t done, std::uint64_t total) {
  if (!enabled_ || total == 0 || Clock::now() < next_) return;
  next_ = Clock::now() + kInterval;
  drawn_ = true;
  std::string bar(kWidth, '.');
  bar.replace(0, kWidth * done / total, kWidth * done / total, '#');
  std::cerr << "\r" << title_ << " [" << bar << "] " << 100 * done / total << "%\x1b[K"
            << std::flush;
}

}  // namespace openelm::cli
