// SPDX-License-Identifier: Apache-2.0
// The template backend, called through its tables as by a host.
#include <gmock/gmock.h>

#include <cmath>

#include "core/plugin/context.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class NullBackend : public testing::Test {
 protected:
  void Start(const std::string& count) {
    folder_.Write("mge_null.so", ReadAll(MGE_BINARY_DIR "/lib/mge/plugins/mge_null.so"));
    DevicesOptions options;
    options.settings = [count](std::string_view, std::span<const mge_setting* const>) {
      return std::vector<std::string>{count};
    };
    devices_ = Load({folder_.path()}, std::move(options));
    ASSERT_EQ(devices_->files()[0].verdict, Verdict::kLoaded) << devices_->files()[0].reason;
    device_ = devices_->Resolve("null0")->devices[0].device;
  }
  PluginFolder folder_;
  std::unique_ptr<Devices> devices_;
  Device* device_ = nullptr;
};

TEST_F(NullBackend, IsChosenByNameOnly) {
  Start("2");
  EXPECT_EQ(devices_->all().size(), 3u);
  EXPECT_TRUE(devices_->Resolve("null1").ok());
  EXPECT_FALSE(devices_->Resolve("null2").ok());
  EXPECT_FALSE(devices_->Resolve("xpux").ok());
  EXPECT_EQ(devices_->gpu_count(), 0);
  EXPECT_TRUE(device_->Health().ok());
}

TEST_F(NullBackend, GivesMemoryThroughAPool) {
  Start("1");
  Pool& pool = **device_->PoolOf();
  mge_reservation r = *pool.Acquire(5000);
  EXPECT_NE(r.host_address, nullptr);
  pool.Release(r);
  EXPECT_EQ(pool.name(), "naive");
}

TEST_F(NullBackend, FencesAreReachedWhenTheirSignalHasBeenEnqueued) {
  Start("1");
  const mge_queue_api& api = *device_->queue_api();
  mge_queue* queue = nullptr;
  mge_fence* fence = nullptr;
  ASSERT_EQ(api.create(device_->handle(), MGE_QUEUE_COMPUTE, &queue, nullptr), MGE_OK);
  ASSERT_EQ(api.fence_create(device_->handle(), &fence, nullptr), MGE_OK);
  mge_error error;
  mge_queue* unknown = nullptr;
  EXPECT_EQ(api.create(device_->handle(), 99, &unknown, &error), MGE_UNIMPLEMENTED);
  EXPECT_EQ(api.host_wait(fence, 1, 0, &error), MGE_FAILED_PRECONDITION);  // no signal has been enqueued
  EXPECT_NE(error.text, "");
  char from[] = "abc", to[4] = {};
  EXPECT_EQ(api.copy(queue, to, from, 4, nullptr), MGE_OK);
  EXPECT_EQ(api.signal(queue, fence, 3, nullptr), MGE_OK);
  EXPECT_EQ(api.wait(queue, fence, 2, nullptr), MGE_OK);
  EXPECT_EQ(api.host_wait(fence, 3, UINT64_MAX, nullptr), MGE_OK);
  EXPECT_STREQ(to, "abc");
  api.fence_destroy(fence);
  api.destroy(queue);
}

// A problem of one node with one input and one output.
struct OneNode {
  OneNode(std::string_view op, mge_dtype dtype, const std::vector<int64_t>& dims) {
    for (mge_value& v : values) {
      v = {};
      v.struct_size = sizeof(v);
      v.dtype = dtype;
      v.rank = static_cast<int32_t>(dims.size());
      v.dims = dims.data();
    }
    node = {};
    node.struct_size = sizeof(node);
    node.op = {op.data(), op.size()};
    node.inputs = &input;
    node.input_count = 1;
    node.outputs = &output;
    node.output_count = 1;
    graph = {sizeof(graph), 0, &nodes, 1, value_list, 2, &input, 1, &output, 1};
    problem = {sizeof(problem), 1, &graph, nullptr, nullptr, 0};
  }
  int32_t input = 0, output = 1;
  mge_value values[2];
  const mge_value* value_list[2] = {&values[0], &values[1]};
  mge_node node;
  const mge_node* nodes = &node;
  mge_graph graph;
  mge_problem problem;
};

struct Answers {
  std::vector<mge_candidate> offers;
  std::vector<std::string> refusals;
  const mge_candidate_sink sink = {
      sizeof(sink), 0, this, [](void* self, const mge_candidate* c) { static_cast<Answers*>(self)->offers.push_back(*c); },
      [](void* self, const mge_text*, const mge_text* reason) {
        static_cast<Answers*>(self)->refusals.emplace_back(reason->data, reason->size);
      }};
};

TEST_F(NullBackend, ComputesRelu) {
  Start("1");
  const mge_kernel_api& api = device_->kernel_api();
  std::vector<int64_t> dims = {3, 20000};
  OneNode relu("Relu", MGE_DTYPE_F32, dims);
  Answers answers;
  ASSERT_EQ(api.enumerate(device_->handle(), &relu.problem, nullptr, &answers.sink, nullptr), MGE_OK);
  ASSERT_EQ(answers.offers.size(), 1u);
  mge_prepared prepared = {};
  prepared.struct_size = sizeof(prepared);
  mge_candidate candidate = answers.offers[0];
  candidate.id = {"null.relu", 9};
  ASSERT_EQ(api.prepare(device_->handle(), &relu.problem, &candidate, &prepared, nullptr), MGE_OK);
  mge_slot slots[] = {{0, 0, 0}, {1, 0, 64}};
  mge_binding binding = {};
  binding.struct_size = sizeof(binding);
  binding.inputs = &slots[0];
  binding.outputs = &slots[1];
  std::vector<uint64_t> args(prepared.args_bytes / 8 + 2);
  mge_step_fn step = nullptr;
  ASSERT_EQ(api.bind(prepared.kernel, &binding, args.data(), &step, nullptr), MGE_OK);

  std::vector<float> x(60000), y(60016);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 30000;
  x[5] = NAN;
  void* bases[] = {x.data(), y.data()};
  mge_run run = {};
  run.struct_size = sizeof(run);
  run.width = 1;
  run.bases = bases;
  run.host = device_->host();
  ASSERT_EQ(step(args.data(), &run), MGE_OK);
  EXPECT_EQ(y[15], 0);
  EXPECT_TRUE(std::isnan(y[16 + 5]));
  EXPECT_EQ(y[16 + 20000], 0);
  EXPECT_EQ(y[16 + 59999], 29999);
  api.destroy(prepared.kernel);
}

TEST_F(NullBackend, RefusesWithAReason) {
  Start("1");
  const mge_kernel_api& api = device_->kernel_api();
  std::vector<int64_t> dims = {3}, unknown = {-1};
  Answers answers;
  OneNode half("Relu", MGE_DTYPE_F16, dims), open("Relu", MGE_DTYPE_F32, unknown), other("Conv", MGE_DTYPE_F32, dims);
  for (OneNode* node : {&half, &open, &other}) {
    ASSERT_EQ(api.enumerate(device_->handle(), &node->problem, nullptr, &answers.sink, nullptr), MGE_OK);
  }
  EXPECT_TRUE(answers.offers.empty());
  EXPECT_THAT(answers.refusals, ElementsAre(HasSubstr("only float32"), HasSubstr("known before the run")));
}

TEST_F(NullBackend, OrdersByRankOrByMeasuredTime) {
  Start("1");
  mge_candidate a = {}, b = {};
  a.rank = 2;
  b.rank = 1;
  const mge_candidate* list[] = {&a, &b};
  double measured[] = {1.0, 2.0};
  mge_choice choice = {sizeof(choice), MGE_SELECT_HEURISTIC, nullptr, list, 2, nullptr};
  uint32_t order[2];
  ASSERT_EQ(device_->strategy_api()->order(device_->handle(), &choice, order, nullptr), MGE_OK);
  EXPECT_THAT(order, ElementsAre(1, 0));
  choice.mode = MGE_SELECT_PROFILE;
  choice.measured_us = measured;
  ASSERT_EQ(device_->strategy_api()->order(device_->handle(), &choice, order, nullptr), MGE_OK);
  EXPECT_THAT(order, ElementsAre(0, 1));
}

}  // namespace
}  // namespace mge
