#include "cli/format.h"

#include <spdlog/fmt/fmt.h>

namespace openelm::cli {

std::string format_count(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.2f}B", value / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.1f}M", value / 1e6);
  if (count >= 10'000) return fmt::format("{:.1f}K", value / 1e3);
  return std::to_string(count);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr double kib = 1024;
  const auto value = static_cast<double>(bytes);
  if (value >= kib * kib * kib) return fmt::format("{:.2f} GiB", value / (kib * kib * kib));
  if (value >= kib * kib) return fmt::format("{:.1f} MiB", value / (kib * kib));
  return fmt::format("{:.1f} KiB", value / kib);
}

double per_second(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

}  // namespace openelm::cli
