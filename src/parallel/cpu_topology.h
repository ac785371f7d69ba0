#pragma once

#include <filesystem>
#include <vector>

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

/// CPUs for `n_threads` threads that stay where they are, one each: of different cores as long as
/// there are any, then the cores' other hyperthreads, then from the start again.
std::vector<int> cpus_to_pin(int n_threads, const SystemPaths& paths = {});

/// Keeps the calling thread on one CPU. False where the system has no such thing or refuses.
bool pin_this_thread(int cpu) noexcept;

}  // namespace openelm
