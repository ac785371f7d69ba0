#include "cli/progress.h"

#include <algorithm>
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

void Progress::show(std::uint64_t done, std::uint64_t total, const std::string& detail) {
  if (!enabled_ || (total == 0 && detail.empty()) || Clock::now() < next_) return;
  next_ = Clock::now() + kInterval;
  drawn_ = true;
  std::string line = title_;
  if (total != 0) {
    const std::uint64_t filled = kWidth * std::min(done, total) / total;
    std::string bar(kWidth, '.');
    bar.replace(0, filled, filled, '#');
    line += " [" + bar + "] " + std::to_string(100 * std::min(done, total) / total) + "%";
  }
  if (!detail.empty()) line += " " + detail;
  std::cerr << "\r" << line << "\x1b[K" << std::flush;
}

}  // namespace openelm::cli
