// SPDX-License-Identifier: Apache-2.0
// plan.workspaces on a device without queues, if each step is an operation of the engine.
#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kThreeChains[] = R"(
input x : float32[64]
a = Relu(x)
b = Relu(a)
c = Neg(x)
d = Neg(c)
n = Neg(x)
e = Relu(n)
output b
output d
output e
)";

class OperationLanes : public testing::Test {
 protected:
  // Makes the session of a host with these settings. All kernels take a workspace.
  void Start(const std::string& lanes, const std::string& workers, std::vector<Assignment> more = {}) {
    more.insert(more.end(), {Set("MXNET_EXEC_NUM_TEMP", lanes), Set("MXNET_CPU_WORKER_NTHREADS", workers),
                             Set("MXNET_EXEC_BULK_EXEC_INFERENCE", "0"), Set("plan.skip", "merge_equal")});
    host_ = std::make_unique<Host>(std::move(more));
    ASSERT_TRUE(host_->status.ok()) << FormatError(host_->status);
    host_->record() = {};
    host_->record().workspace = 4096;
    auto session = host_->Make(kThreeChains);
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    session_ = *session;
    plan_ = *session_->PlanFor(std::vector<InputType>{{ValueKind::kTensor, DType::kF32, {64}}});
  }

  std::vector<std::string> Workspaces() const {
    std::vector<std::string> out;
    for (const PlacedBuffer& b : plan_->buffers) {
      if (b.workspace) out.push_back(b.name);
    }
    return out;
  }

  // Runs the session and checks its results. Returns the number of kernels that ran at the same time, up to now.
  int64_t MostAtOnceAfterARun() {
    std::vector<HostValue> in(1), out(3);
    in[0].tensor = *Tensor::Create(DType::kF32, {64});
    auto* x = static_cast<float*>(in[0].tensor.mutable_data());
    for (int i = 0; i < 64; ++i) x[i] = static_cast<float>(i - 32);
    RunState control;
    const absl::Status status = session_->Run(in, out, control);
    EXPECT_TRUE(status.ok()) << FormatError(status);
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(static_cast<const float*>(out[0].tensor.data())[i], std::max(x[i], 0.0f));
      EXPECT_EQ(static_cast<const float*>(out[1].tensor.data())[i], x[i]);
      EXPECT_EQ(static_cast<const float*>(out[2].tensor.data())[i], std::max(-x[i], 0.0f));
    }
    return host_->record().most_at_once;
  }

  std::unique_ptr<Host> host_;
  std::shared_ptr<Session> session_;
  std::shared_ptr<const Plan> plan_;
};

TEST_F(OperationLanes, HaveOneWorkspaceEach) {
  Start("2", "4");
  EXPECT_THAT(Workspaces(), ElementsAre(HasSubstr("lane"), HasSubstr("lane")));
  EXPECT_GT(plan_->report.arena_bytes, 2 * 4096);
}

TEST_F(OperationLanes, AreNoMoreThanWorkers) {
  Start("8", "2");
  EXPECT_EQ(Workspaces().size(), 2u);
}

TEST_F(OperationLanes, AreOneInTheNaiveEngine) {
  Start("8", "4", {Set("MXNET_ENGINE_TYPE", "NaiveEngine")});
  EXPECT_EQ(Workspaces().size(), 1u);
}

TEST_F(OperationLanes, LetKernelsOverlapOnlyIfThereAreTwo) {
  Start("1", "4");
  EXPECT_EQ(Workspaces().size(), 1u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(MostAtOnceAfterARun(), 1);
  Start("2", "4");
  bool overlapped = false;  // the scheduler of the system decides in which run
  for (int i = 0; i < 2000 && !overlapped; ++i) overlapped = MostAtOnceAfterARun() == 2;
  EXPECT_TRUE(overlapped);
}

}  // namespace
}  // namespace mge
