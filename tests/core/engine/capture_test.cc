// SPDX-License-Identifier: Apache-2.0
// Capture and replay of segments whose memory changes from run to run.
#include <algorithm>
#include <cstring>

#include "core/engine/instance_queues.h"
#include "core/plugin/sync_queue.h"
#include "tests/core/engine/queues.h"

namespace mge {
namespace {

constexpr size_t kBytes = 256;

// A step that copies between two bases.
struct CopyArgs {
  const mge_queue_api* api;
  uint32_t from, to;
};
mge_code CopyStep(const void* args, const mge_run* run) {
  const auto& a = *static_cast<const CopyArgs*>(args);
  return a.api->copy(run->queue, run->bases[a.to], run->bases[a.from], kBytes, run->error);
}

class Capture : public Queues {
 protected:
  // Makes a plan with one segment that copies base 0 to base 1 and that to base 2. Bases 0 and 2 belong to the caller.
  void Prepare(const std::string& device) {
    Restart({{"virtual.devices", "1"}});
    for (const auto& d : runtime_->devices().all()) device_ = d->name() == device ? d.get() : device_;
    ASSERT_TRUE(device_ && device_->Open().ok());
    auto pool = device_->PoolOf();
    ASSERT_TRUE(pool.ok());
    memory_ = *(*pool)->Acquire(5 * kBytes);
    plan_ = std::make_unique<Plan>();
    plan_->device = device_;
    plan_->queues = {{device_, MGE_QUEUE_COMPUTE, 1}};
    args_[0] = {device_->queue_api(), 0, 1};
    args_[1] = {device_->queue_api(), 1, 2};
    plan_->units = std::vector<Unit>(2);
    for (int32_t i : {0, 1}) plan_->steps.push_back({CopyStep, &args_[i], i});
    Segment segment = {.device = device_, .queue = 0, .first_step = 0, .step_count = 2, .capture_safe = true};
    segment.signal = 1;
    segment.bases = {0, 2};
    plan_->segments.push_back(segment);
    auto queues = InstanceQueues::Create(*plan_, runtime_->queue_limits());
    ASSERT_TRUE(queues.ok()) << FormatError(queues.status());
    queues_ = *std::move(queues);
  }
  void TearDown() override {
    queues_.reset();
    plan_.reset();
    if (device_) (*device_->PoolOf())->Release(memory_);
    Queues::TearDown();
  }

  char* At(int block) { return static_cast<char*>(memory_.address) + static_cast<size_t>(block) * kBytes; }

  // Runs the segment from one block to another, and expects the copied bytes.
  void Run(int from, int to) {
    std::vector<char> sent(kBytes), got(kBytes);
    std::fill(sent.begin(), sent.end(), ++seed_);
    auto queue = SyncQueue::Create(*device_);
    ASSERT_TRUE(queue.ok());
    ASSERT_TRUE((*queue)->Upload(At(from), sent.data(), kBytes).ok());
    ASSERT_TRUE((*queue)->Finish().ok());
    void* const bases[] = {At(from), At(2), At(to)};
    mge_error error;
    mge_run run = {};
    run.struct_size = sizeof(run);
    run.bases = bases;
    run.queue = queues_->queue(0);
    run.error = &error;
    RunState control;
    absl::Status status = queues_->Enqueue(0, run, control, nullptr);
    ASSERT_TRUE(status.ok()) << FormatError(status);
    status = queues_->FinishRun(control);
    ASSERT_TRUE(status.ok()) << FormatError(status);
    ASSERT_TRUE((*queue)->Download(got.data(), At(to), kBytes).ok());
    EXPECT_EQ(got, sent);
  }

  Device* device_ = nullptr;
  mge_reservation memory_ = {};
  CopyArgs args_[2] = {};
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<InstanceQueues> queues_;
  char seed_ = 0;
};

TEST_F(Capture, ReplaysARecordForEachMemoryOfTheCaller) {
  Prepare("async0");
  for (auto [from, to] : {std::pair(0, 3), {0, 3}, {1, 3}, {1, 3}}) Run(from, to);
  EXPECT_EQ(control_->captures, 2);
  EXPECT_EQ(control_->records, 2);
  for (int round = 0; round < 3; ++round) {
    Run(0, 3);
    Run(1, 3);
  }
  EXPECT_EQ(control_->captures, 2);
  EXPECT_EQ(queues_->replays(), 8u);
}

TEST_F(Capture, UpdatesTheOldestRecordOnceThereAreFour) {
  Prepare("virtual0");
  Run(0, 3);
  EXPECT_EQ(queues_->replays(), 0u);
  for (auto [from, to] : {std::pair(0, 3), {1, 3}, {1, 4}, {0, 4}, {3, 4}, {4, 3}, {3, 0}, {0, 3}}) Run(from, to);
  EXPECT_EQ(queues_->replays(), 8u);
}

TEST_F(Capture, WaitsUntilTheMemoryStaysIfTheBackendCannotUpdateRecords) {
  Prepare("async0");
  Run(0, 3);
  Run(0, 3);
  EXPECT_EQ(control_->captures, 1);
  Run(1, 3);
  Run(0, 3);  // as in the record
  EXPECT_EQ(control_->captures, 1);
  EXPECT_EQ(queues_->replays(), 2u);
  for (auto [from, to] : {std::pair(1, 4), {1, 3}, {0, 4}, {4, 3}, {3, 4}}) {
    Run(from, to);
    Run(from, to);
  }
  EXPECT_EQ(control_->captures, 6);
  EXPECT_EQ(control_->records, 4);  // the oldest ones were destroyed
  EXPECT_EQ(queues_->replays(), 7u);
  Run(0, 3);  // its record was one of them
  EXPECT_EQ(queues_->replays(), 7u);
}

}  // namespace
}  // namespace mge
