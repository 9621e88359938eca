// SPDX-License-Identifier: Apache-2.0
// The GPU emulator: its guarantees for kernels, and the errors that its checkers report for faulty ones.
#include "plugins/gpu/emulation/emulator.h"

#include <sys/wait.h>

#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/kernels/machine.h"

namespace mge::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Order = EmulatorSettings::Order;

struct Trial {
  std::vector<int32_t> x = std::vector<int32_t>(4096), y = std::vector<int32_t>(4096);
  MachineArgs args = {};
  Launch launch;

  explicit Trial(std::string_view kernel, uint32_t threads = 64, uint32_t blocks = 1) {
    std::iota(x.begin(), x.end(), 0);
    args = {x.data(), y.data(), 1000};
    launch.kernel = FindKernel(kernel);
    launch.block[0] = threads;
    launch.grid[0] = blocks;
    launch.args = &args;
    launch.args_bytes = sizeof(args);
  }
};

TEST(Emulator, NumbersKernelsByName) {
  ASSERT_GT(KernelCount(), 100u);
  for (uint32_t k = 0; k < KernelCount(); ++k) EXPECT_EQ(FindKernel(KernelName(k)), k);
  EXPECT_EQ(FindKernel("relu"), kNoKernel);
  EXPECT_EQ(FindKernel(""), kNoKernel);
  EXPECT_EQ(FindKernel("zzz"), kNoKernel);
}

TEST(Emulator, MultipliesFragmentsAsMatrixUnitsDo) {
  for (const auto& [kernel, depth] : {std::pair<const char*, size_t>{"machine_matrix_units_f16", 16},
                                      {"machine_matrix_units_bf16", 16},
                                      {"machine_matrix_units_tf32", 8}}) {
    Trial r(kernel);
    for (size_t i = 0; i < 24 * depth; ++i) r.x[i] = static_cast<int32_t>(i * 37 % 61) - 30;
    Emulator e;
    ASSERT_TRUE(e.Run(r.launch)) << e.error();
    for (size_t row = 0; row < 16; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        int32_t sum = 0;
        for (size_t k = 0; k < depth; ++k) sum += r.x[row * depth + k] * r.x[16 * depth + k * 8 + column];
        EXPECT_EQ(r.y[row * 8 + column], sum) << kernel << " " << row << "," << column;
      }
    }
  }
}

// The bytes of a copy arrive when its thread waits for it.
TEST(Emulator, CopiesInTheBackground) {
  for (Order order : {Order::kForward, Order::kReverse, Order::kShuffled}) {
    Emulator e({.order = order});
    Trial r("machine_copy");
    ASSERT_TRUE(e.Run(r.launch)) << e.error();
    for (size_t i = 0; i < 256; ++i) EXPECT_EQ(r.y[i], static_cast<int32_t>(4 * (63 - i / 4) + i % 4));
    Trial bad("machine_copy_without_wait");
    EXPECT_FALSE(e.Run(bad.launch));
    EXPECT_THAT(e.error(), HasSubstr("thread 0 ends without waiting for its copies to shared memory"));
    EXPECT_EQ(bad.y[0], -1);
  }
}

TEST(Emulator, WaitsForTheGroupsOfCopiesThatAThreadNames) {
  Trial r("machine_copy_groups");
  Emulator e;
  ASSERT_TRUE(e.Run(r.launch)) << e.error();
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(r.y[i], static_cast<int32_t>(i));
  for (size_t t = 0; t < 64; ++t) {
    EXPECT_EQ(r.y[256 + t], -1) << "zeros that are on their way";
    EXPECT_EQ(r.y[320 + t], 0);
  }
}

TEST(Emulator, RoundsToTf32) {
  Trial r("machine_round_to_tf32");
  const std::vector<std::pair<uint32_t, uint32_t>> cases = {
      {0x3f800000, 0x3f800000}, {0x3f800fff, 0x3f800000}, {0x3f801000, 0x3f802000},  // a tie goes away from zero
      {0xbf801000, 0xbf802000}, {0x7f7fffff, 0x7f800000}, {0xff800000, 0xff800000},
      {0x7f800001, 0x7fc00001}, {0x7fffffff, 0x7fffffff}};  // not a number stays so
  for (size_t i = 0; i < cases.size(); ++i) r.x[i] = static_cast<int32_t>(cases[i].first);
  Emulator e;
  ASSERT_TRUE(e.Run(r.launch)) << e.error();
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(static_cast<uint32_t>(r.y[i]), cases[i].second) << i;
}

TEST(Emulator, RunsWarpOperationsOfBothSizesInAnyOrder) {
  for (uint32_t warp : {32u, 64u}) {
    for (Order order : {Order::kForward, Order::kReverse, Order::kShuffled}) {
      Emulator e({.order = order, .warp = warp});
      Trial r("machine_warp_operations", 128);
      for (size_t i = 0; i < 128; ++i) r.x[i] = i % 3 == 0;
      ASSERT_TRUE(e.Run(r.launch)) << e.error();
      for (uint32_t t = 0; t < 128; ++t) {
        uint32_t first = t / warp * warp;
        EXPECT_EQ(r.y[3 * t], std::accumulate(&r.x[first], &r.x[t], 0));
        EXPECT_EQ(r.y[3 * t + 1], std::accumulate(&r.x[first], &r.x[first] + warp, 0));
        EXPECT_EQ(r.y[3 * t + 2], r.x[t + 2 < first + warp ? t + 2 : t]);
      }
    }
  }
}

TEST(Emulator, StartsThreadsInTheConfiguredOrder) {
  std::vector<std::vector<int32_t>> seen;
  for (Order order : {Order::kForward, Order::kReverse, Order::kShuffled}) {
    Emulator e({.order = order, .seed = 3});
    Trial r("machine_order_of_threads");
    ASSERT_TRUE(e.Run(r.launch)) << e.error();
    seen.emplace_back(r.y.begin(), r.y.begin() + 64);
    std::vector<int32_t> sorted = seen.back();
    std::sort(sorted.begin(), sorted.end());
    for (int i = 0; i < 64; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
  }
  EXPECT_TRUE(std::is_sorted(seen[0].begin(), seen[0].end()));
  EXPECT_TRUE(std::is_sorted(seen[1].rbegin(), seen[1].rend()));
  EXPECT_NE(seen[2], seen[0]);
  EXPECT_NE(seen[2], seen[1]);
}

TEST(Emulator, PoisonsSharedMemoryBeforeEveryBlock) {
  Emulator e;
  Trial r("machine_first_shared", 64, 3);
  ASSERT_TRUE(e.Run(r.launch)) << e.error();
  EXPECT_THAT(std::vector<int32_t>(r.y.begin(), r.y.begin() + 3), ElementsAre(-1, -1, -1));
}

TEST(Emulator, SupportsBarriersAndDynamicSharedMemory) {
  for (Order order : {Order::kForward, Order::kReverse, Order::kShuffled}) {
    Emulator e({.order = order});
    Trial r("machine_turn_round", 256, 4);
    r.launch.shared_bytes = 256 * 4;
    ASSERT_TRUE(e.Run(r.launch)) << e.error();
    for (int i = 0; i < 1024; ++i) EXPECT_EQ(r.y[static_cast<size_t>(i)], i / 256 * 256 + 255 - i % 256);
  }
}

TEST(Emulator, GivesEqualResultsForBothWaysToReduce) {
  for (uint32_t warp : {32u, 64u}) {
    for (uint32_t threads : {64u, 192u, 256u}) {
      for (bool whole : {true, false}) {
        Emulator e({.order = Order::kShuffled, .warp = warp, .whole_reductions = whole});
        Trial r("machine_sum_of_block", threads);
        ASSERT_TRUE(e.Run(r.launch)) << e.error();
        for (uint32_t t = 0; t < threads; ++t) EXPECT_EQ(r.y[t], static_cast<int32_t>(threads * (threads - 1) / 2));
      }
    }
  }
}

TEST(Emulator, RunsRangesOfBlocksOfAnyGrid) {
  Trial r("machine_place");
  for (int i = 0; i < 3; ++i) r.launch.grid[i] = static_cast<uint32_t>(i + 1);
  r.launch.block[0] = 16;
  r.launch.block[1] = 2;
  r.launch.block[2] = 2;
  Emulator a, b;
  EXPECT_TRUE(a.Run(r.launch, 0, 2));
  EXPECT_TRUE(b.Run(r.launch, 2, Emulator::BlockCount(r.launch) - 2));
  for (int i = 0; i < 6 * 64; ++i) EXPECT_EQ(r.y[static_cast<size_t>(i)], i / 64 * 1000 + i % 64);
}

TEST(Emulator, MayMoveToAnotherThread) {
  Emulator e;
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      Trial r("machine_sum_of_block");
      EXPECT_TRUE(e.Run(r.launch)) << e.error();
      EXPECT_EQ(r.y[5], 2016);
    }).join();
  }
}

struct Faulty {
  const char* kernel;
  std::vector<const char*> words;
};

TEST(Emulator, NamesTheLineWhereThreadsDivergeAndStillWorksAfterwards) {
  const Faulty kFaulty[] = {
      {"machine_barrier_for_some", {"machine_barrier_for_some: ", "machine.cu:"}},
      {"machine_two_barriers", {"threads diverge", "machine.cu:", "others at"}},
      {"machine_warp_waits_for_block", {"deadlock", "at the barrier", "threads of warp 0 at", "machine.cu:"}},
      {"machine_too_much_shared", {"s does not fit into shared memory"}},
  };
  for (Order order : {Order::kForward, Order::kReverse, Order::kShuffled}) {
    Emulator e({.order = order});
    for (const Faulty& f : kFaulty) {
      Trial bad(f.kernel);
      EXPECT_FALSE(e.Run(bad.launch)) << f.kernel;
      for (const char* word : f.words) EXPECT_THAT(e.error(), HasSubstr(word));
      Trial good("machine_sum_of_block");
      EXPECT_TRUE(e.Run(good.launch)) << e.error();
      EXPECT_EQ(good.y[0], 2016);
    }
  }
}

// Checks whether a child process ended by a signal, or by a sanitizer that handled the signal.
bool WasStopped(int status) {
  return !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != kCameThrough);
}

// A guard page follows each stack. Without it, an overflow would write into the stack of another thread.
TEST(EmulatorDeathTest, AThreadThatOverflowsItsStackCrashes) {
  auto run = [](int64_t kib) {
    Emulator e;
    Trial r("machine_deep_stack");
    r.args.n = kib;
    e.Run(r.launch);
  };
  EXPECT_EXIT(run(8), testing::ExitedWithCode(kCameThrough), "");
  EXPECT_EXIT(run(80), WasStopped, "");
}

// The number of mappings of a process is limited, and each guard page takes one.
TEST(EmulatorDeathTest, MoreEmulatorsThanGuardPagesRunAndReleaseThem) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer knows 8128 fibers at most";
#endif
  {
    std::vector<std::unique_ptr<Emulator>> many;
    for (int i = 0; i < 60; ++i) {
      many.push_back(std::make_unique<Emulator>(EmulatorSettings{.whole_reductions = false}));
      Trial r("machine_sum_of_block", 256);
      ASSERT_TRUE(many.back()->Run(r.launch)) << many.back()->error();
    }
    std::ifstream maps("/proc/self/maps");
    std::string line;
    int mappings = 0;
    while (std::getline(maps, line)) ++mappings;
    EXPECT_LT(mappings, 40000);
  }
  Emulator e;
  Trial r("machine_deep_stack");
  r.args.n = 80;
  EXPECT_EXIT(e.Run(r.launch), WasStopped, "");
}

TEST(Emulator, RefusesLaunchesThatDoNotFitTheKernel) {
  Emulator e;
  Trial r("machine_sum_of_block");
  auto refused = [&](auto change, const char* word) {
    Launch launch = r.launch;
    change(launch);
    EXPECT_FALSE(e.Run(launch));
    EXPECT_THAT(e.error(), HasSubstr(word));
  };
  refused([](Launch& l) { l.kernel = kNoKernel; }, "no kernel number");
  refused([](Launch& l) { l.args_bytes = 8; }, "8 bytes of arguments for a kernel that takes 24");
  refused([](Launch& l) { l.block[0] = 33; }, "33 threads in a block");
  refused([](Launch& l) { l.block[0] = 320; }, "320 threads in a block");
  refused([](Launch& l) { l.shared_bytes = 1 << 20; }, "dynamic shared memory");
}

}  // namespace
}  // namespace mge::gpu
