#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace openelm::cli {

/// A line on stderr that tells how far something long has come; drawn only on a terminal, and only
/// once it has taken noticeably long. Removed when it goes out of scope.
class Progress {
 public:
  Progress(std::string title, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Whether there is anybody to show it to.
  bool enabled() const noexcept { return enabled_; }

  /// `total` 0: not known, and there is no bar. `detail` stands behind it.
  void show(std::uint64_t done, std::uint64_t total, const std::string& detail = {});

 private:
  using Clock = std::chrono::steady_clock;
  std::string title_;
  bool enabled_;
  bool drawn_ = false;
  Clock::time_point next_;
};

}  // namespace openelm::cli
