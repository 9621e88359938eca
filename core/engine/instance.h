// SPDX-License-Identifier: Apache-2.0
// An instance: the memory and kernel state of one run of a plan at a time. Kept with the plan and used again.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/tensor.h"
#include "core/engine/instance_queues.h"
#include "core/engine/memory_guard.h"
#include "core/engine/run_control.h"
#include "core/plan/host_step.h"
#include "core/plan/plan.h"
#include "core/plan/program.h"
#include "core/plugin/host_services.h"
#include "core/plugin/unfinished.h"

namespace mge {

class Instance : public HostStepEnvironment, public Unfinished {
 public:
  static absl::StatusOr<std::unique_ptr<Instance>> Create(const Plan& plan);
  ~Instance() override;

  // inputs and outputs in the plan's order. An output tensor that is defined is memory of the caller's for the result (its
  // type must be the plan's); others are made here. Late inputs are taken as they are. Whatever is thrown on the way ends
  // here as an error, once nothing that was enqueued works in this memory any more.
  absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunControl& control) noexcept;

  // Bytes held in all arenas; and in those that count against a budget.
  int64_t arena_bytes() const;
  uint64_t BytesOf(const Budget& budget) const;
  // Whether it may serve another run. After a run that failed on a queue it may not; one that is stuck may not even be
  // destroyed, as the device still works in its memory.
  InstanceQueues::State state() const { return state_; }
  bool Over(std::chrono::nanoseconds patience) noexcept override;  // of one that is stuck
  uint64_t replays() const { return queues_ ? queues_->replays() : 0; }

  HostAllocator& allocator() override { return allocator_; }
  HostValue& late(uint32_t index) override { return late_[index]; }
  absl::Status CheckStop() override { return control_->CheckStop(); }
  uint64_t NextSeed() override;
  absl::StatusOr<std::vector<HostValue>> RunBody(const BodyProgram& body, std::vector<HostValue> inputs) override {
    return RunProgram(*body.program, body.name, std::move(inputs));
  }
  void SetError(absl::Status status) override { error_ = std::move(status); }

 private:
  // What mge_run.pool points to.
  struct RunPool {
    ComputePool* pool;
    uint32_t width;
    RunObserver* observer;
  };
  struct ArenaMemory {
    Pool* pool;
    const Budget* budget;
    mge_reservation reservation;
  };

  // For what host steps make beside the planned memory; a refusal tells of the plan.
  class StepAllocator : public HostAllocator {
   public:
    explicit StepAllocator(const Instance& of) : of_(of) {}
    absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override;

   private:
    const Instance& of_;
  };

  explicit Instance(const Plan& plan);
  Budget& HostBudget() const;  // that outputs count against
  absl::Status TakeArenas();
  void ArmRuns();
  absl::Status Bind(std::span<const HostValue> inputs, std::span<HostValue> outputs);
  absl::Status RunSteps();
  absl::Status Collect(std::span<const HostValue> inputs, std::span<HostValue> outputs);
  static void ParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context);
  static void ObservedParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context);
  // Whether somebody looks at single steps: decided once in a run.
  bool Watched() const { return control_->deadline || control_->observer || guard_; }
  absl::Status RunInThisThread(const Segment& segment);
  absl::Status RunWatched(const Segment& segment);
  absl::Status StepFailed(const Step& step, mge_code code);
  absl::StatusOr<std::vector<HostValue>> RunContinuation();
  // `name`: of the body for an observer.
  absl::StatusOr<std::vector<HostValue>> RunProgram(Program& program, std::string_view name, std::vector<HostValue> inputs);
  HostValue ValueAt(const BoundValue& bound);

  const Plan& plan_;
  StepAllocator allocator_{*this};
  std::vector<ArenaMemory> arenas_;
  std::unique_ptr<InstanceQueues> queues_;  // nullptr where the plan has none
  std::unique_ptr<MemoryGuard> guard_;      // nullptr where the plan is not guarded
  InstanceQueues::State state_ = InstanceQueues::State::kGood;
  std::vector<void*> bases_;
  std::vector<void*> states_;
  std::vector<HostValue> late_;
  // What steps are given: of the calling thread, then of each queue. They stay where they are, as records may point to them.
  std::vector<HostRun> runs_;
  RunPool run_pool_ = {};
  mge_error run_error_;
  std::atomic<int32_t> stop_{0};  // the cancel flag of what is enqueued: it may outlive the control of a run
  RunControl* control_ = nullptr;
  uint64_t random_steps_ = 0;
  absl::Status error_;
};

// The instances of one plan: taken and given back without a lock. What it keeps for later goes before a request for memory of
// the same devices fails, whoever asks.
class InstanceStore : public PlanAttachment {
 public:
  explicit InstanceStore(const Plan& plan);
  ~InstanceStore() override;
  absl::StatusOr<std::unique_ptr<Instance>> Take();
  // Keeps it for the next run if it is fit for one.
  void Give(std::unique_ptr<Instance> instance);
  bool Close() override;
  int64_t IdleBytes() const override;
  void GiveUpIdle() override;
  static InstanceStore& Of(const Plan& plan) { return static_cast<InstanceStore&>(*plan.attachment); }

 private:
  // In what counts against one budget.
  class Share {
   public:
    Share(InstanceStore& store, Budget& budget);
    ~Share() { budget.Leave(this); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    Budget& budget;
    std::atomic<uint64_t> bytes{0};  // of one instance, as the pools round them
  };
  static constexpr int kKept = 16;
  std::unique_ptr<Instance> TakeKept();
  int KeptCount() const;
  bool Orphaned() const;
  uint64_t GiveBack(const Budget& budget, uint32_t pressure);

  const Plan& plan_;
  std::atomic<Instance*> kept_[kKept] = {};
  UnfinishedList stuck_;
  std::deque<Share> shares_;  // goes first
};

// The plan of a program for a run.
absl::StatusOr<std::shared_ptr<const Plan>> PlanForRun(Program& program, std::span<const InputType> inputs,
                                                       RunControl& control);

// Runs a plan once with an instance of its store. `body`: its name for an observer, empty for a model's.
absl::Status RunPlan(const std::shared_ptr<const Plan>& plan, std::string_view body, std::span<const HostValue> inputs,
                     std::span<HostValue> outputs, RunControl& control);

}  // namespace mge
