// SPDX-License-Identifier: Apache-2.0
// Limits of a machine and its control groups (cgroups), simulated by files in a temporary directory.
#include "mge/plugin/host_limits.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace mge {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;
const std::string kNoLimit = "9223372036854771712\n";  // the text of cgroup version 1

// A machine with 8000 MiB of memory, 6000 of them available.
class HostLimits : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "mge_host_limits_" + std::to_string(getpid());
    fs::remove_all(root_);
    Write("proc/meminfo",
          "MemTotal:        8192000 kB\nMemFree:          100000 kB\nMemAvailable:    6144000 kB\nBuffers:  1 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
  }
  // Unified() writes a group of cgroup version 2, Old() one of version 1. Limit and use are in MiB.
  void Unified(const std::string& group, uint64_t limit, uint64_t used) {
    Write("sys/fs/cgroup" + group + "/memory.max", std::to_string(limit * kMiB) + "\n");
    Write("sys/fs/cgroup" + group + "/memory.current", std::to_string(used * kMiB) + "\n");
  }
  void Old(const std::string& group, uint64_t limit, uint64_t used) {
    Write("sys/fs/cgroup/memory" + group + "/memory.limit_in_bytes", std::to_string(limit * kMiB) + "\n");
    Write("sys/fs/cgroup/memory" + group + "/memory.usage_in_bytes", std::to_string(used * kMiB) + "\n");
  }
  void ExpectMemory(uint64_t free, uint64_t total) {
    MemoryAmount amount = HostMemoryAmount(root_);
    EXPECT_EQ(amount.free_bytes, free * kMiB);
    EXPECT_EQ(amount.total_bytes, total * kMiB);
  }

  std::string root_;
};

TEST_F(HostLimits, WithoutGroupsAreThoseOfTheMachine) {
  ExpectMemory(6000, 8000);
  EXPECT_GT(HostProcessorLimit(root_), 1e9);
  Write("proc/self/cgroup", "0::/user.slice\n");  // a group without limit files
  ExpectMemory(6000, 8000);
}

TEST_F(HostLimits, AreUnknownIfNoFileCanBeRead) {
  fs::remove_all(root_);
  ExpectMemory(0, 0);
  Write("proc/meminfo", "nonsense\nMemTotal:\nMemAvailable: many kB\n");
  Write("proc/self/cgroup", "\n:\n::\n0\n0:\n4:memory\nwithout colons\n0::");
  ExpectMemory(0, 0);
  EXPECT_GT(HostProcessorLimit(root_), 1e9);
}

TEST_F(HostLimits, OfVersion2AreTheLeastOfTheGroupAndItsParents) {
  Write("proc/self/cgroup", "0::/outer/middle/inner\n");
  Unified("/outer", 4000, 1000);
  ExpectMemory(3000, 4000);
  Unified("/outer/middle/inner", 1000, 300);
  ExpectMemory(700, 1000);
  Unified("/outer/middle", 500, 100);  // less than its child group
  ExpectMemory(400, 500);
  Unified("/outer/elsewhere", 10, 10);
  ExpectMemory(400, 500);
  Unified("/outer", 4000, 3900);  // other processes use almost all of it
  ExpectMemory(100, 500);
  Unified("/outer", 4000, 4100);
  ExpectMemory(0, 500);
}

TEST_F(HostLimits, OfVersion2AreThoseOfTheRootInAContainer) {
  for (const char* group : {"0::/\n", "0::/docker/0123456789ab\n", "0::/../../host\n"}) {
    Write("proc/self/cgroup", group);
    Unified("", 2000, 500);
    ExpectMemory(1500, 2000);
  }
}

TEST_F(HostLimits, WithoutALimitAreThoseOfTheMachine) {
  Write("proc/self/cgroup", "0::/a\n");
  Unified("/a", 1000, 900);
  Write("sys/fs/cgroup/a/memory.max", "max\n");
  ExpectMemory(6000, 8000);
  Unified("/a", 9000, 100);  // more than the machine has
  ExpectMemory(6000, 8000);
  Write("sys/fs/cgroup/a/memory.max", "99999999999999999999999\n");
  ExpectMemory(6000, 8000);

  Write("proc/self/cgroup", "4:memory:/a\n");
  Old("/a", 1, 1);
  Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", kNoLimit);
  ExpectMemory(6000, 8000);
}

TEST_F(HostLimits, OfVersion1AreReadFromItsMemoryController) {
  Write("proc/self/cgroup", "9:name=systemd:/a\n5:hugetlb,memory:/outer/inner\n2:cpu,cpuacct:/b\n0::/c\n");
  Old("", 8000, 0);
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", kNoLimit);
  Old("/outer", 3000, 600);
  ExpectMemory(2400, 3000);
  Old("/outer/inner", 3500, 3400);
  ExpectMemory(100, 3000);
  Old("/b", 10, 0);
  Unified("/c", 2000, 1950);  // both versions at the same time
  ExpectMemory(50, 2000);
}

TEST_F(HostLimits, DoNotCountTheFileCacheAsUsed) {
  Write("proc/self/cgroup", "0::/a\n");
  Unified("/a", 1000, 900);
  Write("sys/fs/cgroup/a/memory.stat",
        "anon 5\nfile 700\nactive_file 100\ninactive_file " + std::to_string(600 * kMiB) + "\n");
  ExpectMemory(700, 1000);
  Write("proc/self/cgroup", "4:memory:/a\n");
  Old("/a", 1000, 900);
  Write("sys/fs/cgroup/memory/a/memory.stat",
        "inactive_file 0\ntotal_active_file 3\ntotal_inactive_file " + std::to_string(200 * kMiB) + "\n");
  ExpectMemory(300, 1000);
}

TEST_F(HostLimits, AGroupWithoutAUsageFileHasItsWholeLimitFree) {
  Write("proc/self/cgroup", "0::/a\n");
  Write("sys/fs/cgroup/a/memory.max", std::to_string(1000 * kMiB));
  ExpectMemory(1000, 1000);
}

TEST_F(HostLimits, OfProcessorsAreTheLeastOfTheGroupAndItsParents) {
  Write("proc/self/cgroup", "0::/outer/inner\n");
  Write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_GT(HostProcessorLimit(root_), 1e9);
  Write("sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  EXPECT_EQ(HostProcessorLimit(root_), 2.5);
  Write("sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
  EXPECT_EQ(HostProcessorLimit(root_), 0.5);
  for (const char* text : {"", "50000", "50000 ", "50000 0\n", "-1 100000\n", "50000 max\n"}) {
    Write("sys/fs/cgroup/outer/inner/cpu.max", text);
    EXPECT_EQ(HostProcessorLimit(root_), 2.5) << text;
  }

  Write("proc/self/cgroup", "2:cpu,cpuacct:/a\n");
  EXPECT_GT(HostProcessorLimit(root_), 1e9);
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "200000\n");
  EXPECT_EQ(HostProcessorLimit(root_), 1.5);
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_GT(HostProcessorLimit(root_), 1e9);
}

TEST(HostLimitsOfThisMachine, AreRead) {
  MemoryAmount amount = HostMemoryAmount();
  EXPECT_GT(amount.total_bytes, 64 * kMiB);
  EXPECT_GT(amount.free_bytes, 0u);
  EXPECT_LE(amount.free_bytes, amount.total_bytes);
  EXPECT_GT(HostProcessorLimit(), 0);
}

}  // namespace
}  // namespace mge
