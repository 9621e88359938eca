// SPDX-License-Identifier: Apache-2.0
// The race checker: silent on the kernels, loud on faulty ones and on wrong arguments.
#include "plugins/gpu/emulation/races.h"

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/kernels/chain.h"
#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/kernels/index.h"
#include "plugins/gpu/kernels/matmul.h"
#include "plugins/gpu/kernels/norm.h"
#include "plugins/gpu/kernels/reduce.h"
#include "plugins/gpu/kernels/resize.h"
#include "tests/plugins/gpu/kernels/machine.h"

namespace mge::gpu {
namespace {

using ::testing::HasSubstr;

using Order = EmulatorSettings::Order;

// The first race of a launch, empty if there is none.
template <typename Args>
std::string RaceOf(Emulator& e, std::string_view kernel, const Args& args, uint32_t threads, uint32_t blocks) {
  Launch launch;
  launch.kernel = FindKernel(kernel);
  launch.grid[0] = blocks;
  launch.block[0] = threads;
  launch.args = &args;
  launch.args_bytes = sizeof(args);
  EXPECT_TRUE(e.Run(launch)) << e.error();
  return races::Text();
}

struct Memory {
  std::vector<float> a = std::vector<float>(20000, 0.5f), b = a, c = a, y = a;
  std::vector<int64_t> places = std::vector<int64_t>(2000), index = {0, 3, 3, 1, 2, 2, 4, 0};
  Fault fault = {};
};
using Try = std::function<void(const char* kernel, std::string race)>;
// Launches of the kernels of a file.
struct File {
  const char* name;
  void (*launches)(Emulator& e, Memory& m, const Try& check);
};

void Chains(Emulator& e, Memory& m, const Try& check) {
  ChainArgs chain = {};
  chain.inputs[0] = chain.output = m.y.data();  // in place
  chain.inputs[1] = m.b.data();
  chain.n = 400;
  chain.walk = {2, 0, {20, 20}};
  chain.strides[0][0] = 20;
  chain.strides[0][1] = chain.strides[1][1] = 1;
  chain.input_count = chain.step_count = 2;
  chain.steps[0] = {kChain_add, 0, 1, 0, 0};
  chain.steps[1] = {kChain_relu, 2, 0, 0, 0};
  check("chain", RaceOf(e, "chain_f32", chain, 64, 3));
}

void Convolutions(Emulator& e, Memory& m, const Try& check) {
  ConvArgs conv = {};
  conv.x = m.a.data();
  conv.w = m.b.data();
  conv.bias = m.c.data();
  conv.y = m.y.data();
  conv.images = 1;
  conv.groups = 1;
  conv.channels = 5;
  conv.outputs = 70;
  conv.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  conv.axis[1] = conv.axis[2] = {9, 9, 3, 1, 1, 1, 1};
  check("product", RaceOf(e, "conv_product_f32", conv, 256, 4));
  conv.residual = conv.y;  // in place of the residual
  check("product with a residual", RaceOf(e, "conv_product_f32", conv, 256, 2));
  conv.images = conv.groups = 2;
  conv.channels = conv.outputs = 4;
  check("direct", RaceOf(e, "conv_direct_f32", conv, 64, 4));
  conv.residual = nullptr;
  conv.axis[1] = conv.axis[2] = {5, 9, 3, 2, 1, 1, 1};
  check("transposed", RaceOf(e, "conv_transposed_f32", conv, 64, 4));
}

void Copies(Emulator& e, Memory& m, const Try& check) {
  check("transpose", RaceOf(e, "transpose_4", TransposeArgs{m.a.data(), m.y.data(), 2, 45, 70}, 256, 12));
  CopyArgs copy = {m.a.data(), m.y.data(), 300, 2, 0, {20, 15}, {1, 20}, {-15, 1}};
  copy.y = m.y.data() + 400;
  check("copy", RaceOf(e, "copy_4", copy, 64, 3));
  check("fill", RaceOf(e, "fill_4", FillArgs{m.y.data(), 300, 7}, 64, 3));
  PlacesArgs pad = {m.a.data(), m.y.data(), 300, 2, 1, {20, 15}, {16, 11}, {11, 1}, {2, 2}};
  check("pad", RaceOf(e, "pad_4", pad, 64, 3));
}

void Products(Emulator& e, Memory& m, const Try& check) {
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
  check("tiles", RaceOf(e, "matmul_f32", product, 256, 4));
  check("plain", RaceOf(e, "matmul_plain_u32", product, 64, 5));
  product.splits = 2;
  check("parts", RaceOf(e, "matmul_part_f32", product, 256, 8));
  MatMulArgs join = product;
  join.a = m.y.data();
  join.residual = join.y = m.c.data();  // in place of the residual
  join.residual_row = 90;
  join.residual_column = 1;
  check("join", RaceOf(e, "matmul_join_f32", join, 64, 5));
}

void Norms(Emulator& e, Memory& m, const Try& check) {
  for (float* x : {m.a.data(), m.y.data()}) {  // the second: in place
    check("softmax of a block", RaceOf(e, "softmax_block_f32", SoftmaxArgs{x, m.y.data(), 6, 300, 1, 0, 0}, 128, 3));
    check("softmax of a thread", RaceOf(e, "softmax_thread_f32", SoftmaxArgs{x, m.y.data(), 90, 7, 9, 1, 0}, 64, 2));
    NormArgs norm = {x, m.b.data(), m.c.data(), m.y.data(), m.y.data() + 5000, m.y.data() + 6000, 6, 300, 1, 300, 1, 1e-5, 1,
                     0};
    check("norm", RaceOf(e, "norm_f32", norm, 128, 3));
    BatchNormArgs batch = {x, m.b.data(), m.c.data(), m.b.data(), m.c.data(), m.y.data(), 400, 5, 8, 1e-5};
    check("batch norm", RaceOf(e, "batch_norm_f32", batch, 64, 3));
  }
  check("lrn", RaceOf(e, "lrn_f32", LrnArgs{m.a.data(), m.y.data(), 400, 5, 8, 3, 1, 0.75, 1}, 64, 3));
}

void Pools(Emulator& e, Memory& m, const Try& check) {
  PoolArgs pool = {};
  pool.x = m.a.data();
  pool.y = m.y.data();
  pool.indices = m.places.data();
  pool.n = 3 * 9 * 9;
  pool.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  pool.axis[1] = pool.axis[2] = {9, 9, 3, 1, 1, 1, 1};
  check("largest", RaceOf(e, "max_pool_f32", pool, 64, 3));
  check("average", RaceOf(e, "average_pool_f32", pool, 64, 3));
}

void Reductions(Emulator& e, Memory& m, const Try& check) {
  ReduceArgs reduce = {};
  reduce.x = m.a.data();
  reduce.y = m.y.data();
  reduce.outputs = 5;
  reduce.count = 700;
  reduce.kept = {1, 0, {5}, {700}};
  reduce.reduced = {1, 0, {700}, {1}};
  reduce.splits = 3;
  check("block", RaceOf(e, "reduce_sum_block_f32", reduce, 128, 5));
  check("atomic", RaceOf(e, "reduce_atomic_sum_f32", reduce, 128, 15));
  reduce.outputs = 100;
  reduce.count = 9;
  reduce.kept = {1, 0, {100}, {9}};
  reduce.reduced = {1, 0, {9}, {1}};
  check("thread", RaceOf(e, "reduce_sum_thread_f32", reduce, 64, 2));
  check("log of a sum", RaceOf(e, "reduce_log_sum_exp_thread_f32", reduce, 64, 2));
}

void Resizes(Emulator& e, Memory& m, const Try& check) {
  ResizeArgs resize = {};
  resize.x = m.a.data();
  resize.y = m.y.data();
  resize.n = 14 * 21;
  resize.rank = 2;
  resize.axis[0] = {7, 14, 14, 2, 0, 0};
  resize.axis[1] = {14, 21, 1, 1.5, 0, 0};
  check("nearest", RaceOf(e, "resize_nearest_4", resize, 64, 3));
  for (int32_t mode : {kLinear, kCubic}) {
    resize.mode = mode;
    check("smooth", RaceOf(e, "resize_smooth_f32", resize, 64, 3));
  }
}

void Scans(Emulator& e, Memory& m, const Try& check) {
  ArgReduceArgs extreme = {m.a.data(), m.places.data(), 150, 7, 15, 0, 1};
  check("position of an extreme", RaceOf(e, "arg_reduce_f32", extreme, 64, 3));
  for (float* x : {m.a.data(), m.y.data()}) {  // the second: in place
    RunningSumArgs sums = {x, m.index.data() + 3, m.y.data(), &m.fault, 900, {10, 9, 10}, 3, 1, 0, 1};
    check("running sum", RaceOf(e, "running_sum_f32", sums, 64, 2));
    check("hardmax", RaceOf(e, "hardmax_f32", HardmaxArgs{x, m.y.data(), 90, 7, 9}, 64, 2));
  }
  TopKArgs top = {m.a.data(), m.y.data(), m.places.data(), 90, 12, 9, 5, 1, 0};
  check("largest", RaceOf(e, "top_k_f32", top, 64, 2));
}

// Sums of updates in y.
ScatterArgs Scatter(Memory& m) {
  ScatterArgs args = {};
  args.indices = m.index.data();
  args.updates = m.a.data();
  args.y = m.y.data();
  args.fault = &m.fault;
  args.wide = 1;
  args.reduction = kScatterAdd;
  return args;
}
void Scatters(Emulator& e, Memory& m, const Try& check) {
  ScatterArgs nd = Scatter(m);
  nd.lines = 100;
  nd.along = 8;
  nd.rank = 1;
  nd.dims[0] = 5;
  nd.strides[0] = 100;
  check("by tuples", RaceOf(e, "scatter_nd_f32", nd, 64, 2));
  for (size_t i = 0; i < m.places.size(); ++i) m.places[i] = static_cast<int64_t>(i / 100 % 5);
  ScatterArgs elements = Scatter(m);
  elements.indices = m.places.data();
  elements.lines = 100;
  elements.along = 8;
  elements.bound = 5;
  elements.rank = 2;
  elements.dims[0] = 8;
  elements.dims[1] = 100;
  elements.strides[0] = 100;
  elements.strides[1] = 1;
  check("along an axis", RaceOf(e, "scatter_elements_f32", elements, 64, 2));
}

constexpr File kFiles[] = {{"chain", Chains},       {"conv", Convolutions}, {"copy", Copies},   {"matmul", Products},
                           {"norm", Norms},         {"pool", Pools},        {"reduce", Reductions}, {"resize", Resizes},
                           {"scan", Scans},         {"scatter", Scatters}};
// Files that need no launch here.
const std::map<std::string, std::string> kNeedNone = {
    {"binary", "a thread writes the elements of its number, and reads of its output no others"},
    {"cast", "as binary"},
    {"gather", "as binary; no output lies over an input"},
    {"unary", "as binary"}};

TEST(Races, KernelsHaveNone) {
  struct Machine {
    Order order;
    uint32_t warp;
  };
  for (Machine machine : {Machine{Order::kForward, 32}, {Order::kReverse, 64}, {Order::kShuffled, 32}}) {
    Emulator e({.order = machine.order, .warp = machine.warp, .whole_reductions = false});
    for (const File& file : kFiles) {
      Memory m;
      file.launches(e, m, [&](const char* kernel, const std::string& race) {
        EXPECT_EQ(race, "") << file.name << ", " << kernel << ", warps of " << machine.warp;
      });
      EXPECT_EQ(m.fault.what, Fault::kNone) << file.name;
    }
  }
}

TEST(Races, EveryKernelFileIsTriedOrNeedsNone) {
  std::set<std::string> listed, found;
  for (const File& file : kFiles) listed.insert(file.name);
  for (const auto& [name, reason] : kNeedNone) {
    EXPECT_NE(reason, "");
    EXPECT_TRUE(listed.insert(name).second) << name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(MGE_SOURCE_DIR "/plugins/gpu/kernels")) {
    if (entry.path().extension() == ".cu") found.insert(entry.path().stem());
  }
  EXPECT_EQ(listed, found);
}

TEST(Races, FaultyKernelsAreFound) {
  std::vector<int32_t> x(1000), y(1000);
  MachineArgs args = {x.data(), y.data(), 64};
  for (Order order : {Order::kForward, Order::kReverse, Order::kShuffled}) {
    Emulator e({.order = order});  // often where the one before was
    EXPECT_THAT(RaceOf(e, "machine_race_of_neighbours", args, 64, 1), HasSubstr("in shared memory"));
    EXPECT_THAT(RaceOf(e, "machine_race_of_blocks", args, 64, 2), HasSubstr("block 1"));
    EXPECT_EQ(RaceOf(e, "machine_race_of_blocks", args, 64, 1), "");
    EXPECT_THAT(RaceOf(e, "machine_phases_without_barrier", args, 64, 1), HasSubstr("in shared memory"));
  }
}

// Right kernels, but memory that lies over other memory as no operator asks for it.
TEST(Races, WrongArgumentsAreFound) {
  Memory m;
  Emulator e;
  ScatterArgs scatter = Scatter(m);
  scatter.lines = 100;
  scatter.along = 1;
  scatter.bound = 5;
  scatter.rank = 2;
  scatter.dims[0] = 1;
  scatter.dims[1] = 100;
  scatter.strides[0] = 100;  // all lines of y are one
  scatter.indices = m.places.data();
  EXPECT_THAT(RaceOf(e, "scatter_elements_f32", scatter, 64, 2), HasSubstr("in memory"));
  TransposeArgs transpose = {m.y.data(), m.y.data(), 1, 40, 40};
  EXPECT_THAT(RaceOf(e, "transpose_4", transpose, 256, 4), HasSubstr("in memory"));
  LrnArgs lrn = {m.y.data(), m.y.data(), 400, 5, 8, 3, 1, 0.75, 1};
  EXPECT_THAT(RaceOf(e, "lrn_f32", lrn, 64, 3), HasSubstr("in memory"));
}

}  // namespace
}  // namespace mge::gpu
