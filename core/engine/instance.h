// SPDX-License-Identifier: Apache-2.0
// An instance: the memory and kernel state for one run of a plan at a time. It is kept with the plan, and later runs reuse
// it.
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
#include "core/engine/random_buffers.h"
#include "core/engine/run_state.h"
#include "core/engine/shared_arena.h"
#include "core/engine/step_checks.h"
#include "core/engine/step_operations.h"
#include "core/plan/host_step.h"
#include "core/plan/plan.h"
#include "core/plan/program.h"
#include "core/plugin/host_services.h"
#include "core/plugin/unfinished.h"

namespace mge {

class Runtime;

// An instance of a plan. Owns the arenas, the queues and the kernels' states. Not thread-safe. The plan must outlive it.
class Instance : public HostStepEnvironment, public Unfinished {
 public:
  // Allocates the arenas and creates queues and states. Fails with kOverBudget, kOutOfMemory or a backend's error. The
  // engine of `runtime` runs the steps if the plan has accesses. The runtime must outlive the runs. Unless `use` is own(),
  // allocates no arenas: each run leases them. What `use` holds must then outlive the instance. `settings` ask for checks of
  // steps.
  static absl::StatusOr<std::unique_ptr<Instance>> Create(const Plan& plan, Runtime& runtime,
                                                          std::shared_ptr<const Snapshot> settings,
                                                          const ArenaUse& use = {});
  ~Instance() override;

  // Runs the plan. `inputs` and `outputs` are in the plan's order. A defined output tensor is memory of the caller for the
  // result and must have the plan's type. Other output tensors are created. Exceptions become errors. After an error, waits
  // up to kPatience for enqueued work and then sets state().
  absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control) noexcept;

  // A fence of one queue. It is reached, or fails, when the work enqueued before its signal has ended.
  struct QueuePoint {
    Device* device;
    mge_fence* fence;
    uint64_t value;
  };
  // Begins like Run(), but returns when all work of the queues is enqueued. It starts when `after` is reached: the queues of
  // the same backend wait on the device, otherwise this thread waits. `ends` receives one fence per queue, which the caller
  // owns, also after an error. The caller then calls Finish(), and keeps inputs, outputs and all fences until then. The plan
  // must write all outputs to memory of devices or to page-locked memory, and must have no continuation.
  absl::Status Start(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control,
                     std::span<const QueuePoint> after, std::vector<QueuePoint>& ends) noexcept;
  // Ends a run that Start() began and whose fences are reached or have failed. Returns the error of the run.
  absl::Status Finish() noexcept;
  // Stops the work of a run that Start() began and that does not end. Sets state().
  void Abandon() noexcept { Abort(); }

  // Returns the bytes of all arenas. Shared arenas count with what the latest run used of them.
  int64_t arena_bytes() const;
  // Returns the bytes of the arenas that are charged to that budget.
  uint64_t BytesOf(const Budget& budget) const;
  // Returns whether the instance can serve another run. An instance that is kBroken must be destroyed. An instance that is
  // kStuck must not be destroyed, since a device still uses its memory.
  InstanceQueues::State state() const { return state_; }
  // Waits at most `patience` for the enqueued work of a failed run. Returns false if the instance is still stuck.
  bool Over(std::chrono::nanoseconds patience) noexcept override;
  uint64_t replays() const { return queues_ ? queues_->replays() : 0; }

  HostAllocator& allocator() override { return allocator_; }
  HostValue& dynamic(uint32_t index) override { return dynamic_[index]; }
  absl::Status CheckStop() override { return control_->CheckStop(); }
  uint64_t NextSeed() override;
  absl::StatusOr<std::vector<HostValue>> RunBody(const BodyProgram& body, std::vector<HostValue> inputs) override {
    return RunProgram(*body.program, body.name, std::move(inputs));
  }
  void CountStaged(uint64_t bytes) override {
    std::atomic_ref(control_->staged_bytes).fetch_add(bytes, std::memory_order_relaxed);
  }
  void SetError(absl::Status status) override { error_ = std::move(status); }

 private:
  // The object that mge_run::pool points to.
  struct PoolShare {
    ComputePool* pool;
    uint32_t width;
    RunObserver* observer;
  };
  struct ArenaMemory {
    Pool* pool;
    const Budget* budget;
    mge_reservation reservation;
  };

  // The allocator for values that host steps create beside the planned memory. A refusal names the plan's needs.
  class StepAllocator : public HostAllocator {
   public:
    explicit StepAllocator(const Instance& of) : of_(of) {}
    absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override;

   private:
    const Instance& of_;
  };

  explicit Instance(const Plan& plan);
  Budget& HostBudget() const;  // the budget to which outputs are charged
  absl::Status TakeArenas();
  // Leases the shared arenas for a run, if the plan uses them.
  absl::Status BeginLease();
  // Makes the checks of steps for the current addresses of the arenas.
  absl::Status MakeChecks();
  // Ends the lease, unless a device still works on the memory.
  void EndLease();
  // Fills the members of runs_ that do not change between runs.
  void ArmRuns();
  // Sets the bases of inputs and outputs. Creates output tensors.
  absl::Status Bind(std::span<const HostValue> inputs, std::span<HostValue> outputs);
  // Sets the base of an input or output. Remembers if an address that queues use has changed.
  void SetBase(const BoundValue& bound, const Tensor& tensor);
  // Stops enqueued work after an error and waits up to kPatience for it.
  void Abort() noexcept;
  absl::Status Await(std::span<const QueuePoint> after);
  absl::Status SignalEnds(std::vector<QueuePoint>& ends);
  // Sets what all steps of a run need.
  absl::Status BeginSteps();
  absl::Status EnqueueSteps();
  absl::Status RunSteps();
  // Runs one step as an operation of the engine. Waits for its end, also on a queue.
  absl::Status RunOperation(int32_t step);
  // Runs the continuation, if there is one, and stores the outputs that no step has written in place.
  absl::Status Collect(std::span<const HostValue> inputs, std::span<HostValue> outputs);
  static void ParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context);
  static void ObservedParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context);
  // Returns true if single steps must be reported or checked. Evaluated once in a run.
  bool Watched() const { return control_->deadline || control_->observer || checks_; }
  absl::Status RunInThisThread(const Segment& segment);
  absl::Status RunWatched(const Segment& segment);
  // Returns the error of a step in host memory that failed with `error`, or of a host step that called SetError().
  absl::Status StepFailed(const Step& step, mge_code code, const mge_error& error);
  absl::StatusOr<std::vector<HostValue>> RunContinuation();
  // Runs a body or the continuation. `name` is passed to the observer.
  absl::StatusOr<std::vector<HostValue>> RunProgram(Program& program, std::string_view name, std::vector<HostValue> inputs);
  HostValue ValueAt(const BoundValue& bound);

  const Plan& plan_;
  StepAllocator allocator_{*this};
  std::vector<ArenaMemory> arenas_;
  std::unique_ptr<ArenaLeases> leases_;     // nullptr if the arenas are the instance's own
  std::unique_ptr<RandomBuffers> random_;   // nullptr if no kernel draws random numbers
  std::unique_ptr<InstanceQueues> queues_;  // nullptr if the plan has no queues
  std::shared_ptr<const Snapshot> settings_;
  Logger logger_;
  std::unique_ptr<StepChecks> checks_;  // nullptr if steps are not checked
  InstanceQueues::State state_ = InstanceQueues::State::kGood;
  std::vector<void*> bases_;
  std::vector<void*> states_;
  std::vector<HostValue> dynamic_;
  // The mge_run of the steps in the calling thread, then one for each queue. Never moved: records may point to them.
  std::vector<HostRun> runs_;
  // For each operation: its mge_run and error. Never moved, and kept until enqueued work has ended.
  struct OperationSlot {
    HostRun run;
    mge_error error;
    const Segment* segment;
  };
  std::vector<OperationSlot> operation_slots_;
  std::unique_ptr<StepOperations> operations_;  // nullptr: a run calls all steps itself
  PoolShare pool_share_ = {};
  mge_error run_error_;
  std::atomic<int32_t> stop_{0};  // cancel flag for enqueued steps, which may outlive the RunState
  RunState* control_ = nullptr;
  absl::Status error_;
};

// The idle instances of one plan. Thread-safe; Acquire() and Release() use no lock while no instance is stuck. If a request for
// memory of the same devices would fail, the budget makes the store release its idle instances first.
class InstanceStore : public PlanAttachment {
 public:
  // The instances run with the engine and the limits of `runtime`. `settings` are those of the session.
  InstanceStore(const Plan& plan, Runtime& runtime, std::shared_ptr<const Snapshot> settings, ArenaUse arenas = {});
  ~InstanceStore() override;
  // Returns an idle instance, or a new one.
  absl::StatusOr<std::unique_ptr<Instance>> Acquire();
  // Keeps an instance for the next run. Destroys it if it is broken, or if enough are kept. Keeps a stuck instance aside
  // until its device stops.
  void Release(std::unique_ptr<Instance> instance);
  bool Close() override;
  int64_t IdleBytes() const override;
  void GiveUpIdle() override;
  const ArenaUse& arenas() const { return arenas_; }
  static InstanceStore& Of(const Plan& plan) { return static_cast<InstanceStore&>(*plan.attachment); }

 private:
  // The store's registration with one budget. The budget calls it to release memory.
  class Share {
   public:
    Share(InstanceStore& store, Budget& budget);
    ~Share() { budget.Leave(this); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    Budget& budget;
    std::atomic<uint64_t> bytes{0};  // bytes of one instance in this budget, as the pools rounded them
  };
  static constexpr int kKept = 16;  // limit of idle instances
  // Takes an idle instance out of the store. Returns nullptr if there is none.
  std::unique_ptr<Instance> TakeKept();
  int KeptCount() const;
  // Returns true if the instances belong to the parent process. This process must then not release them.
  bool Orphaned() const;
  // Destroys the idle instances if the pressure is critical. Returns the bytes released from that budget.
  uint64_t GiveBack(const Budget& budget, uint32_t pressure);

  const Plan& plan_;
  Runtime& runtime_;
  const ArenaUse arenas_;
  const std::shared_ptr<const Snapshot> settings_;
  std::atomic<Instance*> kept_[kKept] = {};
  UnfinishedList stuck_;
  std::deque<Share> shares_;  // destroyed first
};

// Returns the plan of a program for a run. Reports the planning to the run's observer.
absl::StatusOr<std::shared_ptr<const Plan>> PlanForRun(Program& program, std::span<const InputType> inputs,
                                                       RunState& control, std::span<const IoPlace> outputs = {});

// Runs a plan once with an instance of its store. `body` is the name for an observer; it is empty for a model's plan.
absl::Status RunPlan(const std::shared_ptr<const Plan>& plan, std::string_view body, std::span<const HostValue> inputs,
                     std::span<HostValue> outputs, RunState& control);

}  // namespace mge
