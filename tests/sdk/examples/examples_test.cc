// SPDX-License-Identifier: Apache-2.0
// The examples of the SDK work as the guide describes: the operator runs, the claim fuses, the backend's own parts are used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/plugin/memory/pool.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

namespace ob = onnx_builder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kFolder[] = MGE_BINARY_DIR "/tests/examples";

// ---- the examples run with the mge command

class AsAUser : public testing::Test {
 protected:
  // Writes the model x, z -> nodes -> y, whose inputs are float32[64].
  void Model(const std::vector<std::string>& nodes) const {
    std::vector<ob::Dim> dims = {int64_t{64}};
    std::ofstream(folder_.At("model.onnx"), std::ios::binary) << ob::ModelProto(
        {.graph = ob::GraphProto({.nodes = nodes,
                                  .inputs = {ob::ValueInfo("x", DType::kF32, dims), ob::ValueInfo("z", DType::kF32, dims)},
                                  .outputs = {ob::TextField(ob::field::value_info::kName, "y")}})});
  }
  std::string Mge(const std::string& args) const {
    std::string line = "cd " + folder_.path() + " && MGE_PLUGIN_PATH=" + kFolder + " " MGE_BINARY_DIR "/bin/mge " + args +
                       " >out 2>&1 </dev/null";
    int status = std::system(line.c_str());
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0) << args << "\n" << ReadAll(folder_.At("out"));
    return ReadAll(folder_.At("out"));
  }
  // Returns the output bytes of one device. Inputs come from a fixed seed, so they are equal on all devices.
  std::string Outputs(const std::string& device) const {
    Mge("run model.onnx --device " + device + " --output-dir " + device);
    return ReadAll(folder_.At(device + "/y.npy"));
  }
  PluginFolder folder_;
};

TEST_F(AsAUser, TheConformanceKitPassesEveryExample) {
  for (const char* example : {"relu", "fusion", "layouts", "parts", "driver"}) {
    EXPECT_THAT(Mge(std::string("sdk test ") + kFolder + "/mge_example_" + example + ".so"), HasSubstr("passed")) << example;
  }
}

TEST_F(AsAUser, TheSmallestBackendRunsItsOperator) {
  EXPECT_THAT(Mge("plugins"), HasSubstr("mge_example_relu.so"));
  Model({ob::NodeProto("Relu", {"x"}, {"y"})});
  std::string host = Outputs("host");
  ASSERT_GT(host.size(), 64 * sizeof(float));
  EXPECT_EQ(Outputs("example_relu0"), host);
  EXPECT_THAT(Mge("plan model.onnx --device example_relu0 --why"), HasSubstr("example.relu"));
}

TEST_F(AsAUser, ARefusalShowsTheBackendsReason) {
  std::vector<ob::Dim> dims = {int64_t{4}};
  std::ofstream(folder_.At("model.onnx"), std::ios::binary)
      << ob::ModelProto({.graph = ob::GraphProto({.nodes = {ob::NodeProto("Relu", {"x"}, {"y"})},
                                                  .inputs = {ob::ValueInfo("x", DType::kF64, dims)},
                                                  .outputs = {ob::TextField(ob::field::value_info::kName, "y")}})});
  std::string plan = Mge("plan model.onnx --device example_relu0 --why");
  EXPECT_THAT(plan, HasSubstr("REFERENCE"));  // the reference evaluator computes it
  EXPECT_THAT(plan, HasSubstr("only float32"));
}

TEST_F(AsAUser, TheClaimBecomesOneStepWithTheCorrectResult) {
  Model({ob::NodeProto("Add", {"x", "z"}, {"s"}), ob::NodeProto("Relu", {"s"}, {"y"})});
  std::string host = Outputs("host");
  ASSERT_GT(host.size(), 64 * sizeof(float));
  EXPECT_EQ(Outputs("example_fusion0"), host);
  std::string plan = Mge("plan model.onnx --device example_fusion0 --why");
  EXPECT_THAT(plan, HasSubstr("1 steps"));
  EXPECT_THAT(plan, HasSubstr("example.add_relu"));
}

TEST_F(AsAUser, AnOperandReadTwiceIsBoundOnce) {
  Model({ob::NodeProto("Add", {"x", "x"}, {"s"}), ob::NodeProto("Relu", {"s"}, {"t"}),
         ob::NodeProto("Add", {"t", "z"}, {"y"})});
  EXPECT_EQ(Outputs("example_fusion0"), Outputs("host"));
}

TEST_F(AsAUser, TheBackendsOwnStrategyChoosesTheKernel) {
  Model({ob::NodeProto("Relu", {"x"}, {"y"})});
  std::string plan = Mge("plan model.onnx --device example_parts0 --why");
  // The host's strategy would choose the other kernel: equal cost, better rank.
  EXPECT_THAT(plan, HasSubstr("Relu                         example.relu.rows"));
  EXPECT_EQ(Outputs("example_parts0"), Outputs("host"));
}

// ---- the example with a driver

TEST_F(AsAUser, ADriverComputesModels) {
  Model({ob::NodeProto("Abs", {"x"}, {"a"}), ob::NodeProto("Add", {"a", "z"}, {"s"}), ob::NodeProto("Neg", {"s"}, {"n"}),
         ob::NodeProto("Add", {"n", "x"}, {"y"})});
  const std::string host = Outputs("host");
  ASSERT_GT(host.size(), 64 * sizeof(float));
  EXPECT_EQ(Outputs("example_driver0"), host);
  EXPECT_EQ(Outputs("example_driver1"), host);
  EXPECT_EQ(Outputs("example_driver0+example_driver1"), host);
}

TEST_F(AsAUser, AClaimDependsOnTheDevice) {
  Model({ob::NodeProto("Add", {"x", "z"}, {"s"}), ob::NodeProto("Relu", {"s"}, {"y"})});
  const std::string first = Mge("plan model.onnx --device example_driver0 --why");
  EXPECT_THAT(first, HasSubstr("toy.add relu"));
  EXPECT_THAT(first, HasSubstr("compiles"));
  EXPECT_THAT(Mge("plan model.onnx --device example_driver1 --why"), Not(HasSubstr("toy.add relu")));
  EXPECT_EQ(Outputs("example_driver1"), Outputs("example_driver0"));
}

TEST_F(AsAUser, ADeviceListsWhatTheDriverKnows) {
  const std::string listed = Mge("devices --json");
  EXPECT_THAT(listed, HasSubstr("\"buffer_alignment\": 256"));
  EXPECT_THAT(listed, HasSubstr("\"steps\": \"4\""));
  EXPECT_THAT(listed, HasSubstr("\"steps\": \"1\""));
}

// ---- the examples called through their tables

class OwnParts : public testing::Test {
 protected:
  void Start(uint64_t limit = 0) {
    folder_.Write("mge_example_parts.so", ReadAll(std::string(kFolder) + "/mge_example_parts.so"));
    DevicesOptions options;
    options.memory_limit = limit;
    devices_ = Load({folder_.path()}, std::move(options));
    ASSERT_EQ(devices_->files()[0].verdict, Verdict::kLoaded) << devices_->files()[0].reason;
    device_ = devices_->Resolve("example_parts0")->devices[0].device;
  }
  PluginFolder folder_;
  std::unique_ptr<Devices> devices_;
  Device* device_ = nullptr;
};

constexpr uint64_t kPage = 64 << 10;  // the same value as in parts.cc

TEST_F(OwnParts, ThePoolDecidesTheSizeOfAReservation) {
  Start();
  Pool& pool = **device_->PoolOf();
  EXPECT_EQ(pool.name(), "own");
  mge_reservation a = *pool.Acquire(100), b = *pool.Acquire(kPage + 1);
  EXPECT_EQ(a.bytes, kPage);
  EXPECT_EQ(b.bytes, 2 * kPage);
  pool.Release(a);
  pool.Release(b);
  mge_reservation c = *pool.Acquire(kPage + 7);  // gets the smallest free slab that is large enough
  EXPECT_EQ(c.address, b.address);
  EXPECT_EQ(pool.Stats().hits, 1u);
  EXPECT_EQ(pool.Stats().committed, 3 * kPage);
  mge_reservation aligned = *pool.Acquire(kPage, 4096);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.address) % 4096, 0u);
  EXPECT_GE(aligned.bytes, kPage);
  pool.Release(aligned);
  EXPECT_FALSE(pool.Acquire(9 * kPage, kDefaultAlignment, nullptr, MGE_POOL_NO_GROWTH).ok());
  pool.Release(c);
  pool.Trim(MGE_TRIM_ALL);
  EXPECT_EQ(pool.Stats().committed, 0u);
  EXPECT_EQ(device_->budget().in_use(), 0u);
}

TEST_F(OwnParts, TheBudgetLimitsThePool) {
  Start(4 * kPage);
  Pool& pool = **device_->PoolOf();
  mge_reservation a = *pool.Acquire(3 * kPage);
  absl::Status over = pool.Acquire(2 * kPage).status();
  EXPECT_THAT(FormatError(over), HasSubstr("E0602"));  // the error of the host
  pool.Release(a);
  absl::StatusOr<mge_reservation> b = pool.Acquire(4 * kPage);  // the pool releases free slabs to make room
  ASSERT_TRUE(b.ok()) << FormatError(b.status());
  pool.Release(*b);
}

TEST_F(OwnParts, TheReservePolicyDecidesTheMemoryTakenBeforeTheFirstRun) {
  Start();
  mge_plan_summary plan = {};
  plan.struct_size = sizeof(plan);
  plan.arena_bytes = 5 * kPage;
  ASSERT_TRUE(device_->Reserve(plan).ok());
  EXPECT_EQ((*device_->PoolOf())->Stats().committed, 10 * kPage);
}

TEST_F(OwnParts, TheStrategyOrdersInEveryMode) {
  Start();
  ASSERT_TRUE(device_->Open().ok());
  mge_candidate plain = {}, invariant = {};
  plain.cost_us = 1;
  invariant.cost_us = 2;
  invariant.attributes = MGE_KERNEL_BATCH_INVARIANT;
  const mge_candidate* list[] = {&plain, &invariant};
  double measured[] = {1.0, 2.0};
  for (int32_t mode : {MGE_SELECT_HEURISTIC, MGE_SELECT_PROFILE, MGE_SELECT_REPRODUCIBLE}) {
    mge_choice choice = {sizeof(choice), mode, nullptr, list, 2, mode == MGE_SELECT_PROFILE ? measured : nullptr};
    uint32_t order[2];
    ASSERT_EQ(device_->strategy_api()->order(device_->handle(), &choice, order, nullptr), MGE_OK);
    EXPECT_THAT(order, ElementsAre(1, 0)) << mode;
  }
}

}  // namespace
}  // namespace mge
