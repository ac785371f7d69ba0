#pragma once

#include <filesystem>

namespace openelm {

/// Where the system describes itself; tests point it at a made-up tree.
struct SystemPaths {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

/// CPUs this process may be scheduled on, hyperthreads of one core counted once. At least 1.
int usable_cores(const SystemPaths& paths = {});

/// CPUs' worth of time that the control groups (v2 cpu.max, v1 cpu.cfs_quota_us) of this process
/// grant, the tightest on the way to the root; 0 when there is no limit.
double cpu_quota(const SystemPaths& paths = {});

/// usable_cores(), and no more than the quota rounded down. At least 1.
int default_thread_count(const SystemPaths& paths = {});

}  // namespace openelm
