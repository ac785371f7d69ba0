#include "parallel/cpu_topology.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace openelm {
namespace {

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Quota of one control group: `max_file` holds "quota period" (v2), or `quota_file` and
/// `period_file` one number each (v1). 0: none.
double group_quota(const std::filesystem::path& group, bool v2) {
  std::istringstream text(v2 ? first_line(group / "cpu.max")
                             : first_line(group / "cpu.cfs_quota_us") + " " +
                                   first_line(group / "cpu.cfs_period_us"));
  double quota = 0;
  double period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return 0;  // "max" or -1: no limit
  return quota / period;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
#endif
  if (cpus.empty()) {
    const int n = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (int cpu = 0; cpu < n; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

/// A name for the core that the CPU belongs to.
std::string core_of(int cpu, const SystemPaths& paths) {
  const std::string name = "cpu" + std::to_string(cpu);
  const std::string siblings =
      first_line(paths.sys / "devices/system/cpu" / name / "topology/thread_siblings_list");
  return siblings.empty() ? name : siblings;
}

}  // namespace

int usable_cores(const SystemPaths& paths) {
  std::set<std::string> cores;
  for (const int cpu : allowed_cpus()) cores.insert(core_of(cpu, paths));
  return static_cast<int>(cores.size());
}

std::vector<int> cpus_to_pin(int n_threads, const SystemPaths& paths) {
  std::vector<int> cpus;
  std::vector<int> siblings;
  std::set<std::string> cores;
  for (const int cpu : allowed_cpus()) {
    (cores.insert(core_of(cpu, paths)).second ? cpus : siblings).push_back(cpu);
  }
  cpus.insert(cpus.end(), siblings.begin(), siblings.end());
  std::vector<int> chosen;
  for (int i = 0; i < n_threads; ++i) {
    chosen.push_back(cpus[static_cast<std::size_t>(i) % cpus.size()]);
  }
  return chosen;
}

bool pin_this_thread([[maybe_unused]] int cpu) noexcept {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
#else
  return false;
#endif
}

double cpu_quota(const SystemPaths& paths) {
  double tightest = 0;
  std::ifstream groups(paths.proc / "self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "hierarchy:controllers:path"; v2 has hierarchy 0 and no controllers.
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
    const auto root = v2 ? paths.sys / "fs/cgroup" : paths.sys / "fs/cgroup/cpu";
    // Inside a container the path may name groups that are not visible: those files are just
    // absent.
    std::filesystem::path relative = std::filesystem::path(line.substr(second + 1)).relative_path();
    while (true) {
      const double quota = group_quota(root / relative, v2);
      if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
      if (relative.empty()) break;
      relative = relative.parent_path();
    }
  }
  return tightest;
}

int default_thread_count(const SystemPaths& paths) {
  const int cores = usable_cores(paths);
  const double quota = cpu_quota(paths);
  if (quota <= 0) return cores;
  return std::max(1, std::min(cores, static_cast<int>(quota)));
}

}  // namespace openelm
