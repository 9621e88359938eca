// SPDX-License-Identifier: Apache-2.0
// The overrun checker: the emulator and its kernels, compiled with the address sanitizer. It reports nothing for correct
// kernels. For others it names the line that accesses memory outside of a shared or global array.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/gpu/emulation/emulator.h"
#include "tests/plugins/gpu/kernels/launches.h"
#include "tests/plugins/gpu/kernels/machine.h"

namespace mge::gpu {
namespace {

using Order = EmulatorSettings::Order;

struct Trial {
  std::unique_ptr<int32_t[]> x, y;
  MachineArgs args;
  Launch launch;

  Trial(std::string_view kernel, uint32_t threads, size_t x_count, size_t y_count, uint32_t shared_bytes = 0)
      : x(new int32_t[x_count]()), y(new int32_t[y_count]()), args{x.get(), y.get(), static_cast<int64_t>(y_count) - 1} {
    launch.kernel = FindKernel(kernel);
    launch.block[0] = threads;
    launch.args = &args;
    launch.args_bytes = sizeof(args);
    launch.shared_bytes = shared_bytes;
  }
  bool Run(Order order = Order::kForward) {
    Emulator e({.order = order, .whole_reductions = false});
    bool ok = e.Run(launch);
    EXPECT_TRUE(ok) << e.error();
    return ok;
  }
};

TEST(Overruns, CorrectKernelsHaveNone) {
  for (Order order : {Order::kForward, Order::kReverse, Order::kShuffled}) {
    EXPECT_TRUE(Trial("machine_warp_operations", 192, 192, 3 * 192).Run(order));
    EXPECT_TRUE(Trial("machine_order_of_threads", 64, 1, 65).Run(order));
    EXPECT_TRUE(Trial("machine_first_shared", 64, 1, 1).Run(order));
    EXPECT_TRUE(Trial("machine_turn_round", 192, 192, 192, 192 * 4).Run(order));
    EXPECT_TRUE(Trial("machine_two_parts", 64, 64, 64, 64 * 4).Run(order));
    EXPECT_TRUE(Trial("machine_sum_of_block", 192, 192, 192).Run(order));
  }
}

TEST(Overruns, TheKernelsOfOperatorsHaveNone) {
  for (EmulatorSettings settings : {EmulatorSettings{.warp = 32, .whole_reductions = false},
                                    EmulatorSettings{.order = Order::kReverse, .warp = 64, .whole_reductions = false},
                                    EmulatorSettings{.order = Order::kShuffled, .warp = 32}}) {
    Emulator e(settings);
    for (const KernelFile& file : KernelFiles()) {
      Memory m;
      file.launches(m, [&](const char* what, const Launch& launch) {
        EXPECT_TRUE(e.Run(launch)) << file.name << ", " << what << ": " << e.error();
      });
      EXPECT_EQ(m.fault.what, Fault::kNone) << file.name;
    }
  }
}

// Proves that the arrays of the launches are no larger than needed.
TEST(OverrunsDeathTest, AnArrayWithOneElementTooFewIsFound) {
  for (const KernelFile& file : KernelFiles()) {
    Memory all;
    file.launches(all, [](const char*, const Launch&) {});
    for (size_t short_one = 0; short_one < all.arrays(); ++short_one) {
      SCOPED_TRACE(testing::Message() << file.name << ", array " << short_one);
      Emulator e;
      Memory m(short_one);
      EXPECT_DEATH(file.launches(m, [&](const char*, const Launch& launch) { e.Run(launch); }),
                   "SUMMARY: AddressSanitizer: heap-buffer-overflow .*/(kernels/[a-z_]+|port)\\.(cu|h):[0-9]+");
    }
  }
}

// Returns a regular expression of the sanitizer's report about a kernel of machine.cu.
std::string Report(const std::string& what, const std::string& access) {
  return what + "(.*\n)*" + access + " of size 4(.*\n)*.*machine\\.cu:[0-9]+";
}

TEST(OverrunsDeathTest, LeavingAnArrayOfSharedMemoryIsFound) {
  EXPECT_DEATH(Trial("machine_shared_too_far", 64, 1, 64).Run(), Report("use-after-poison", "WRITE"));
}

TEST(OverrunsDeathTest, LeavingTheDynamicPartOfSharedMemoryIsFound) {
  for (uint32_t missing : {4u, 128u}) {
    EXPECT_DEATH(Trial("machine_turn_round", 192, 192, 192, 192 * 4 - missing).Run(), Report("use-after-poison", "WRITE"));
    EXPECT_DEATH(Trial("machine_two_parts", 64, 64, 64, 64 * 4 - missing).Run(), Report("use-after-poison", "WRITE"));
  }
}

TEST(OverrunsDeathTest, LeavingGlobalMemoryIsFound) {
  EXPECT_DEATH(Trial("machine_turn_round", 192, 191, 192, 192 * 4).Run(), Report("heap-buffer-overflow", "READ"));
  EXPECT_DEATH(Trial("machine_turn_round", 192, 192, 191, 192 * 4).Run(), Report("heap-buffer-overflow", "WRITE"));
}

}  // namespace
}  // namespace mge::gpu
