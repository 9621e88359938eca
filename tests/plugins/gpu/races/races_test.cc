// SPDX-License-Identifier: Apache-2.0
// The race checker: silent on the kernels that share memory, loud on faulty ones.
#include "plugins/gpu/emulation/races.h"

#include <functional>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/kernels/matmul.h"
#include "plugins/gpu/kernels/norm.h"
#include "plugins/gpu/kernels/reduce.h"
#include "tests/plugins/gpu/kernels/machine.h"

namespace mge::gpu {
namespace {

using ::testing::HasSubstr;

// The first race of a launch, empty if there is none.
template <typename Args>
std::string RaceOf(std::string_view kernel, const Args& args, uint32_t threads, uint32_t blocks, uint32_t warp = 32) {
  static Emulator narrow({.warp = 32, .whole_reductions = false}), wide({.warp = 64, .whole_reductions = false});
  Launch launch;
  launch.kernel = FindKernel(kernel);
  launch.grid[0] = blocks;
  launch.block[0] = threads;
  launch.args = &args;
  launch.args_bytes = sizeof(args);
  Emulator& e = warp == 32 ? narrow : wide;
  EXPECT_TRUE(e.Run(launch)) << e.error();
  return races::Text();
}

struct Buffers {
  std::vector<float> a = std::vector<float>(20000, 0.5f), b = a, c = a, y = a;
};

TEST(Races, KernelsThatShareMemoryHaveNone) {
  for (uint32_t warp : {32u, 64u}) {
    Buffers m;
    EXPECT_EQ(RaceOf("transpose_4", TransposeArgs{m.a.data(), m.y.data(), 2, 45, 70}, 256, 12, warp), "");
    EXPECT_EQ(RaceOf("softmax_block_f32", SoftmaxArgs{m.a.data(), m.y.data(), 6, 300, 1, 0, 0}, 256, 3, warp), "");
    NormArgs norm = {m.a.data(), m.b.data(), m.c.data(), m.y.data(), nullptr, nullptr, 6, 300, 1, 300, 1, 1e-5, 1, 0};
    EXPECT_EQ(RaceOf("norm_f32", norm, 256, 3, warp), "");
    ReduceArgs reduce = {};
    reduce.x = m.a.data();
    reduce.y = m.y.data();
    reduce.outputs = 5;
    reduce.count = 700;
    reduce.kept = {1, 0, {5}, {700}};
    reduce.reduced = {1, 0, {700}, {1}};
    reduce.splits = 3;
    EXPECT_EQ(RaceOf("reduce_sum_block_f32", reduce, 256, 5, warp), "");
    EXPECT_EQ(RaceOf("reduce_atomic_sum_f32", reduce, 256, 15, warp), "");
    MatMulArgs product = {};
    product.a = m.a.data();
    product.b = m.b.data();
    product.y = m.y.data();
    product.m = 70;
    product.n = 90;
    product.k = 50;
    product.batch = 1;
    product.a_row = 50;
    product.a_k = product.b_column = product.alpha = 1;
    product.b_k = 90;
    EXPECT_EQ(RaceOf("matmul_f32", product, 256, 4, warp), "");
    product.splits = 2;
    EXPECT_EQ(RaceOf("matmul_part_f32", product, 256, 8, warp), "");
    ConvArgs conv = {};
    conv.x = m.a.data();
    conv.w = m.b.data();
    conv.y = m.y.data();
    conv.images = conv.groups = 1;
    conv.channels = 5;
    conv.outputs = 70;
    conv.axis[0] = {1, 1, 1, 1, 1, 0, 0};
    conv.axis[1] = conv.axis[2] = {9, 9, 3, 1, 1, 1, 1};
    EXPECT_EQ(RaceOf("conv_product_f32", conv, 256, 4, warp), "");
  }
}

TEST(Races, FaultyKernelsAreFound) {
  std::vector<int32_t> x(1000), y(1000);
  MachineArgs args = {x.data(), y.data(), 64};
  EXPECT_THAT(RaceOf("machine_race_of_neighbours", args, 64, 1), HasSubstr("in shared memory"));
  EXPECT_THAT(RaceOf("machine_race_of_blocks", args, 64, 2), HasSubstr("block 1"));
  EXPECT_EQ(RaceOf("machine_race_of_blocks", args, 64, 1), "");
  EXPECT_THAT(RaceOf("machine_phases_without_barrier", args, 64, 1), HasSubstr("in shared memory"));
}

}  // namespace
}  // namespace mge::gpu
