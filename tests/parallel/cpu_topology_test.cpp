#include "parallel/cpu_topology.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

namespace openelm {
namespace {

namespace fs = std::filesystem;

/// A made-up /proc and /sys.
class CpuTopology : public testing::Test {
 protected:
  CpuTopology() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::temp_directory_path() /
            ("openelm-topology-" + std::to_string(::getpid()) + "-" + info->name());
    paths_ = {root_ / "proc", root_ / "sys"};
  }
  ~CpuTopology() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
  SystemPaths paths_;
};

int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  return CPU_COUNT(&set);
}

TEST_F(CpuTopology, WithoutAnyDescriptionEveryAllowedCpuCounts) {
  EXPECT_EQ(usable_cores(paths_), allowed_cpus());
  EXPECT_EQ(cpu_quota(paths_), 0);
  EXPECT_EQ(default_thread_count(paths_), allowed_cpus());
}

TEST_F(CpuTopology, HyperthreadsOfOneCoreCountOnce) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          "0-1023\n");
  }
  EXPECT_EQ(usable_cores(paths_), 1);
}

TEST_F(CpuTopology, PinsToDifferentCoresFirst) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::vector<int> expected;  // the first of each pair, then the others
  std::vector<int> others;
  int n = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          "pair " + std::to_string(n / 2) + "\n");
    (n % 2 == 0 ? expected : others).push_back(cpu);
    ++n;
  }
  expected.insert(expected.end(), others.begin(), others.end());
  expected.push_back(expected.front());  // more threads than CPUs
  EXPECT_EQ(cpus_to_pin(n + 1, paths_), expected);
}

TEST(PinThisThread, LeavesItOneCpu) {
  const int cpu = cpus_to_pin(1).front();
  int left = 0;
  bool is_it = false;
  std::thread([&] {
    ASSERT_TRUE(pin_this_thread(cpu));
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    left = CPU_COUNT(&set);
    is_it = CPU_ISSET(cpu, &set) != 0;
  }).join();
  EXPECT_EQ(left, 1);
  EXPECT_TRUE(is_it);
}

TEST_F(CpuTopology, QuotaOfTheUnifiedHierarchy) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/cpu.max", "250000 100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota(paths_), 2.5);
}

TEST_F(CpuTopology, TightestQuotaOnTheWayToTheRootHolds) {
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/user/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota(paths_), 1.5);
  EXPECT_EQ(default_thread_count(paths_), 1);
}

TEST_F(CpuTopology, QuotaBelowOneCpuStillGivesOneThread) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(default_thread_count(paths_), 1);
}

TEST_F(CpuTopology, QuotaOfTheFirstHierarchy) {
  write("proc/self/cgroup", "12:memory:/x\n4:cpu,cpuacct:/docker/abc\n0::/ignored\n");
  // A container sees its own group as the root.
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cpu_quota(paths_), 3.0);
}

TEST_F(CpuTopology, NoLimitInTheFirstHierarchy) {
  write("proc/self/cgroup", "4:cpu:/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(paths_), 0);
}

TEST_F(CpuTopology, GarbageIsNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::/\n");
  write("sys/fs/cgroup/cpu.max", "lots of it\n");
  EXPECT_EQ(cpu_quota(paths_), 0);
}

}  // namespace
}  // namespace openelm
