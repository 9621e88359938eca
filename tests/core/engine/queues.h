// SPDX-License-Identifier: Apache-2.0
// Sessions on the asynchronous test backend (fakes/async.h), and models for them.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "gtest/gtest.h"
#include "tests/core/engine/fakes/async.h"
#include "tests/support/session_values.h"

namespace mge {

inline constexpr char kAsyncPlugins[] = MGE_BINARY_DIR "/tests/async";
inline constexpr char kBuiltInPlugins[] = MGE_BINARY_DIR "/lib/mge/plugins";

class Queues : public ::testing::Test {
 protected:
  void SetUp() override { Restart({}); }
  void TearDown() override {
    if (control_) {
      EXPECT_EQ(control_->early_waits, 0);
    }
    session_.reset();
    runtime_.reset();
  }

  void Restart(std::vector<Assignment> settings) {
    session_.reset();
    runtime_.reset();
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {kAsyncPlugins, kBuiltInPlugins};
    settings.push_back({"plan.host_compute", "0"});  // kernels run on the devices, however few elements they have
    options.sources.call = std::move(settings);
    auto runtime = Runtime::Create(std::move(options));
    ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
    runtime_ = *runtime;
    runtime_->devices().StartAll();
    for (const auto& device : runtime_->devices().all()) {
      if (device->name() != "async0") continue;
      control_ =
          static_cast<mge_async_control*>(const_cast<void*>(device->backend().plugin().extension(MGE_ASYNC_CONTROL, 0)));
    }
    ASSERT_NE(control_, nullptr);
    for (auto* flag : {&control_->kernel_fails, &control_->lost, &control_->hangs, &control_->stubborn, &control_->overruns,
                       &control_->packs_on_host}) {
      *flag = false;
    }
    for (auto* number : {&control_->kernels, &control_->replays, &control_->captures, &control_->copies_in,
                         &control_->copies_out, &control_->peer_copies, &control_->copied_bytes_in, &control_->wrong_memory,
                         &control_->most_at_once, &control_->packed, &control_->packed_on_queue, &control_->early_waits,
                         &control_->kernel_us, &control_->copy_us, &control_->wait_us}) {
      *number = 0;
    }
    control_->link_flags = 0;
    control_->good_copies = kEveryCopy;
  }

  std::shared_ptr<Session> Load(const std::string& text, const std::string& device) {
    auto graph = ParseGraphText(text);
    EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
    if (!graph.ok()) return nullptr;
    auto session = Session::Create(runtime_, {*std::move(graph), {}}, {.device = device});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return session.ok() ? *session : nullptr;
  }

  static absl::StatusOr<std::vector<float>> Run(Session& session, const std::vector<HostValue>& in, RunState& control) {
    return ResultsOf(session, in, control);
  }
  static absl::StatusOr<std::vector<float>> Run(Session& session, std::vector<HostValue> in) {
    RunState control;
    return Run(session, std::move(in), control);
  }

  // Runs the model three times on the devices and expects the results of the reference evaluators on the host.
  void Compare(const std::string& text, const std::string& device, const std::vector<HostValue>& in) {
    session_ = Load(text, device);
    auto host = Load(text, "host");
    ASSERT_TRUE(session_ && host);
    for (int round = 0; round < 3; ++round) {
      auto expected = Run(*host, in), got = Run(*session_, in);
      ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
      ASSERT_TRUE(got.ok()) << FormatError(got.status()) << Why(in);
      ASSERT_EQ(got->size(), expected->size());
      for (size_t i = 0; i < got->size(); ++i) ASSERT_NEAR((*got)[i], (*expected)[i], 1e-4) << i << Why(in);
    }
    EXPECT_EQ(control_->wrong_memory, 0) << Why(in);
  }

  std::shared_ptr<const Plan> PlanOf(const std::vector<HostValue>& in) {
    std::vector<InputType> types;
    for (const HostValue& v : in) types.push_back(TypeOfValue(v));
    auto plan = session_->PlanFor(types);
    EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
    return *plan;
  }
  std::string Why(const std::vector<HostValue>& in) { return "\n" + PlanText(*PlanOf(in), true); }

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> session_;
  mge_async_control* control_ = nullptr;
};

inline constexpr char kSmall[] = R"(
input x : float32[4,6]
input y : float32[4,6]
a = Relu(x)
b = Add(a, y)
c = Relu(b)
z = Add(c, a)
output z
)";

inline constexpr char kTwoCandidates[] = "input x : float32[4,4]\na = Abs(x)\noutput a\n";

inline constexpr char kPerceptron[] = R"(
input x : float32[3,4]
const w = float32[4,4]<1,2,3,4,5,6,7,8,-1,-2,-3,-4,-5,-6,-7,-8>
const b = float32[3,4]<1,1,1,1,2,2,2,2,3,3,3,3>
h = MatMul(x, w)
s = Add(h, b)
y = Relu(s)
output y
)";

}  // namespace mge
