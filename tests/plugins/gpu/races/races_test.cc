// SPDX-License-Identifier: Apache-2.0
// The race checker: it reports nothing for the kernels of operators, and finds races of faulty kernels and wrong arguments.
#include "plugins/gpu/emulation/races.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/kernels/index.h"
#include "plugins/gpu/kernels/norm.h"
#include "tests/plugins/gpu/kernels/launches.h"
#include "tests/plugins/gpu/kernels/machine.h"

namespace mge::gpu {
namespace {

using ::testing::HasSubstr;

using Order = EmulatorSettings::Order;

// Returns the first race of a launch, or "" if there is none.
std::string RaceOf(Emulator& e, const Launch& launch) {
  EXPECT_TRUE(e.Run(launch)) << e.error();
  return races::Text();
}

TEST(Races, KernelsHaveNone) {
  struct Machine {
    Order order;
    uint32_t warp;
  };
  for (Machine machine : {Machine{Order::kForward, 32}, {Order::kReverse, 64}, {Order::kShuffled, 32}}) {
    Emulator e({.order = machine.order, .warp = machine.warp, .whole_reductions = false});
    for (const KernelFile& file : KernelFiles()) {
      Memory m;
      file.launches(m, [&](const char* what, const Launch& launch) {
        EXPECT_EQ(RaceOf(e, launch), "") << file.name << ", " << what << ", warps of " << machine.warp;
      });
      EXPECT_EQ(m.fault.what, Fault::kNone) << file.name;
    }
  }
}

// This checker and that of overruns use the same list of launches, which must have every kernel file.
TEST(Races, EveryKernelFileIsTried) {
  std::set<std::string> listed, found;
  for (const KernelFile& file : KernelFiles()) listed.insert(file.name);
  for (const auto& entry : std::filesystem::directory_iterator(MGE_SOURCE_DIR "/plugins/gpu/kernels")) {
    if (entry.path().extension() == ".cu") found.insert(entry.path().stem());
  }
  EXPECT_EQ(listed, found);
}

TEST(Races, FaultyKernelsAreFound) {
  std::vector<int32_t> x(1000), y(1000);
  MachineArgs args = {x.data(), y.data(), 64};
  for (Order order : {Order::kForward, Order::kReverse, Order::kShuffled}) {
    Emulator e({.order = order});  // often at the address of the previous emulator
    auto race = [&](const char* kernel, uint32_t blocks) { return RaceOf(e, LaunchOf(kernel, args, 64, blocks)); };
    EXPECT_THAT(race("machine_race_of_neighbours", 1), HasSubstr("in shared memory"));
    EXPECT_THAT(race("machine_race_of_blocks", 2), HasSubstr("block 1"));
    EXPECT_EQ(race("machine_race_of_blocks", 1), "");
    EXPECT_THAT(race("machine_phases_without_barrier", 1), HasSubstr("in shared memory"));
  }
}

// Correct kernels with arrays that overlap in a way that no operator allows.
TEST(Races, WrongArgumentsAreFound) {
  std::vector<float> x(2000), y(2000);
  std::vector<int64_t> places(100);
  Fault fault = {};
  Emulator e;
  ScatterArgs scatter = {};
  scatter.indices = places.data();
  scatter.updates = x.data();
  scatter.y = y.data();
  scatter.fault = &fault;
  scatter.wide = 1;
  scatter.reduction = kScatterAdd;
  scatter.lines = 100;
  scatter.along = 1;
  scatter.bound = 5;
  scatter.rank = 2;
  scatter.dims[0] = 1;
  scatter.dims[1] = 100;
  scatter.strides[0] = 100;  // all rows of y are the same memory
  EXPECT_THAT(RaceOf(e, LaunchOf("scatter_elements_f32", scatter, 64, 2)), HasSubstr("in memory"));
  TransposeArgs transpose = {y.data(), y.data(), 1, 40, 40};
  EXPECT_THAT(RaceOf(e, LaunchOf("transpose_4", transpose, 256, 4)), HasSubstr("in memory"));
  LrnArgs lrn = {y.data(), y.data(), 400, 5, 8, 3, 1, 0.75, 1};
  EXPECT_THAT(RaceOf(e, LaunchOf("lrn_f32", lrn, 64, 3)), HasSubstr("in memory"));
}

}  // namespace
}  // namespace mge::gpu
