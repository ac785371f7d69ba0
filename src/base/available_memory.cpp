#include "base/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include <unistd.h>

namespace openelm {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

/// MemAvailable of /proc/meminfo.
std::uint64_t system_available() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::uint64_t kilobytes = 0;
  std::string unit;
  while (file >> name >> kilobytes && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return kUnknown;
}

std::uint64_t number_in(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = kUnknown;
  return file >> value ? value : kUnknown;
}

/// What a container may still take (cgroup v2; "max" is no number).
std::uint64_t container_available() {
  const std::uint64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return limit - std::min(limit, used);
}

}  // namespace

std::uint64_t available_memory() {
  const std::uint64_t available = std::min(system_available(), container_available());
  if (available != kUnknown) return available;
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 2;
}

}  // namespace openelm
