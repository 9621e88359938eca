// SPDX-License-Identifier: Apache-2.0
// An instance: the memory and kernel state of one run of a plan at a time. Kept with the plan and used again.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/tensor.h"
#include "core/engine/compute_pool.h"
#include "core/plan/host_step.h"
#include "core/plan/plan.h"

namespace mge {

// What steers one run and all runs nested in it. Owned by the caller; cancel may be set from any thread.
struct RunControl {
  std::atomic<int32_t> cancel{0};
  std::optional<std::chrono::steady_clock::time_point> deadline;
  uint64_t seed = 0;
  uint32_t width = 1;  // threads of the compute pool
  ComputePool* pool = nullptr;
  // Called after every step if set: for profiles. `ns` is the step's time.
  void (*on_step)(void* self, const Plan& plan, int step, int64_t ns) = nullptr;
  void* on_step_self = nullptr;

  absl::Status CheckStop() const;  // kCancelled, kTimeout
};

class Instance : public HostStepEnvironment {
 public:
  static absl::StatusOr<std::unique_ptr<Instance>> Create(const Plan& plan);
  ~Instance() override;

  // inputs and outputs in the plan's order. An output tensor that is defined is memory of the caller's for the result
  // (its type must be the plan's); others are made here. Late inputs are taken as they are.
  absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunControl& control);

  int64_t arena_bytes() const { return static_cast<int64_t>(arena_.bytes); }

  HostAllocator& allocator() override;
  HostValue& late(uint32_t index) override { return late_[index]; }
  absl::Status CheckStop() override { return control_->CheckStop(); }
  uint64_t NextSeed() override;
  absl::StatusOr<std::vector<HostValue>> RunProgram(Program& program, std::vector<HostValue> inputs) override;
  void SetError(absl::Status status) override { error_ = std::move(status); }

 private:
  explicit Instance(const Plan& plan) : plan_(plan) {}
  absl::Status RunSteps();
  absl::Status StepFailed(const Step& step);
  absl::Status RunContinuation(std::span<HostValue> outputs);
  HostValue ValueAt(const BoundValue& bound);

  const Plan& plan_;
  mge_reservation arena_ = {};
  Pool* pool_ = nullptr;
  std::vector<void*> bases_;
  std::vector<void*> states_;
  std::vector<HostValue> late_;
  RunControl* control_ = nullptr;
  uint64_t random_steps_ = 0;
  absl::Status error_;
};

// The instances of one plan: taken and given back without a lock.
class InstanceStore : public PlanAttachment {
 public:
  explicit InstanceStore(const Plan& plan) : plan_(plan) {}
  ~InstanceStore() override;
  absl::StatusOr<std::unique_ptr<Instance>> Take();
  void Give(std::unique_ptr<Instance> instance);
  static InstanceStore& Of(const Plan& plan) { return static_cast<InstanceStore&>(*plan.attachment); }

 private:
  static constexpr int kKept = 16;
  const Plan& plan_;
  std::atomic<Instance*> kept_[kKept] = {};
};

// Runs a plan once with an instance of its store.
absl::Status RunPlan(const Plan& plan, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                     RunControl& control);

}  // namespace mge
