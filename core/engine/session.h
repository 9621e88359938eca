// SPDX-License-Identifier: Apache-2.0
// A session: a model on devices, ready to run.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/instance.h"
#include "core/engine/run_fence.h"
#include "core/engine/run_request.h"
#include "core/engine/run_turn.h"
#include "core/engine/runtime.h"
#include "core/onnx/reader.h"
#include "core/plan/program.h"

namespace mge {

class Communicators;  // core/plan/communicator.h
class Session;

// The state of a training session that its random numbers come from: int64[2], its seed and the number of its runs, which are its steps.
inline constexpr std::string_view kRandomState = "session.random";

// The options of a session.
struct SessionOptions {
  std::string device = {};                // "gpu0,cpu0"; empty: the device of the thread's scope, else the default device
  int threads = 0;                        // 0: the number in the settings
  std::vector<std::string> skip = {};     // passes, rewrites and claims to skip, in addition to those of the settings
  std::vector<Assignment> settings = {};  // dynamic settings for this session only
  // Not null: the values of all settings, instead of the runtime's and of `settings`.
  std::shared_ptr<const Snapshot> snapshot = nullptr;
  std::vector<std::string> outputs = {};  // values of the model to compute; empty: the model's outputs
  bool outputs_on_device = false;         // runs create outputs in the memory of the session's first device with queues
  bool training = false;                  // the model is a training step (core/train): engine.bulk_train applies
  // The session's rank in a group of ranks; nullptr: that of the settings collective.*.
  std::shared_ptr<Communicators> communicators = nullptr;
  std::shared_ptr<Progress> progress = nullptr;  // of loading, and of planning in later runs
  const StopControl* stop = nullptr;             // ends Create() early; used only during the call
};

// The sums of a training over several processes, of all steps so far.
struct CommunicationFacts {
  uint64_t steps = 0;
  uint64_t buckets = 0;  // of a step, each of which is summed when its gradients are computed
  uint64_t bytes = 0;    // of a step
  double busy_us = 0;    // the time of the sums
  double waited_us = 0;  // how long steps waited for them
  // Returns the part of the sums' time in which the steps went on, in [0, 1].
  double Hidden() const { return busy_us > waited_us ? 1 - waited_us / busy_us : 0; }
};

// Sessions that run a model in place of the one that the caller has (core/kvstore). Thread-safe.
class Replicas {
 public:
  virtual ~Replicas() = default;
  // Like the functions of Session. Run() creates all outputs, in host memory. One call of Run(), ReadState() or
  // WriteState() at a time. If a state is divided over several processes, all must call ReadState() at the same time.
  virtual absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control) = 0;
  virtual absl::StatusOr<Tensor> ReadState(const std::string& name) = 0;
  virtual absl::Status WriteState(const std::string& name, const Tensor& elements) = 0;
  virtual absl::StatusOr<std::shared_ptr<const Plan>> PlanFor(std::span<const InputType> inputs,
                                                              const StopControl* stop) = 0;
  virtual std::shared_ptr<const Plan> last_plan() const = 0;
  // Returns the examples of a batch of `examples` that this process computes: the number of the first one, and how many.
  virtual std::pair<int64_t, int64_t> PartOf(int64_t examples) const = 0;
  // Returns the facts of several processes, if the host sums their gradients. Call it between runs.
  virtual std::optional<CommunicationFacts> Communication() const = 0;
  // Returns the session whose states are read. Another one may take its place after a run that failed. Safe on any thread.
  virtual std::shared_ptr<Session> First() const = 0;
};

// A session. Any number of threads may run it at the same time.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // Releases the session's plans. The devices' pools then keep only the memory that their reserve policies retain.
  ~Session();
  // Reads a model from a file and creates a session.
  static absl::StatusOr<std::shared_ptr<Session>> Load(std::shared_ptr<Runtime> runtime, const std::string& path,
                                                       const SessionOptions& options);
  // Creates a session for a model that has been read.
  static absl::StatusOr<std::shared_ptr<Session>> Create(std::shared_ptr<Runtime> runtime, onnx::Model model,
                                                         const SessionOptions& options);
  // Creates a session that runs `model` with the states of `trains`: each initializer with the name and the type of a state
  // has its elements. It shares the devices, settings and turns of `trains`. Its runs must update nothing, draw the same random
  // numbers each time, and leave those of `trains` as they are.
  static absl::StatusOr<std::shared_ptr<Session>> Evaluating(const Session& trains, onnx::Model model);

  const onnx::ModelInfo& info() const { return info_; }
  const Graph& graph() const { return program_->graph(); }
  Device& device() const { return *program_->context().devices.front(); }
  const std::vector<Device*>& devices() const { return program_->context().devices; }  // in order of preference
  uint32_t threads() const { return program_->context().threads; }
  Runtime& runtime() { return *runtime_; }
  const std::shared_ptr<Runtime>& shared_runtime() const { return runtime_; }
  int input_count() const { return static_cast<int>(graph().inputs().size()); }
  int output_count() const { return static_cast<int>(graph().outputs().size()); }
  // Returns the index of the input or output with that name. Fails with kBadInput, which names the nearest name.
  absl::StatusOr<int> InputIndex(std::string_view name) const;
  absl::StatusOr<int> OutputIndex(std::string_view name) const;
  // Returns the outputs' types as far as they are known before a run: declared by the model, or inferred from its inputs.
  const std::vector<ValueType>& output_types() const { return output_types_; }

  // Returns the type of input number `i` with its place. Fails with kBadInput if it lies on another device.
  absl::StatusOr<InputType> InputTypeOf(size_t i, const HostValue& input) const;
  // Returns the plan for inputs of these types and outputs in host memory. Creates it if there is none. Fails like
  // Program::PlanFor() if `stop` is set.
  absl::StatusOr<std::shared_ptr<const Plan>> PlanFor(std::span<const InputType> inputs, const StopControl* stop = nullptr) {
    latest_.store(program_.get(), std::memory_order_relaxed);
    return replicas_ ? replicas_->PlanFor(inputs, stop) : program_->PlanFor(inputs, stop);
  }
  // Returns the plan that Submit() or PlanFor() used last, or nullptr if there is none.
  std::shared_ptr<const Plan> last_plan() const;
  // Returns the examples of a batch of `examples` that this process computes, as Replicas::PartOf() does.
  std::pair<int64_t, int64_t> PartOf(int64_t examples) const {
    return replicas_ ? replicas_->PartOf(examples) : std::pair<int64_t, int64_t>(0, examples);
  }
  std::optional<CommunicationFacts> Communication() const { return replicas_ ? replicas_->Communication() : std::nullopt; }
  // Lets these sessions run the model from now on. Call it before the first run.
  void RunOn(std::shared_ptr<Replicas> replicas) { replicas_ = std::move(replicas); }

  // Runs the model. The caller sets the cancel flag, the deadline and the seed of `control`; the deadline includes planning.
  // This function sets its width and pool. `control` is used only during the call. On an error, the outputs are undefined.
  //
  // With request.wait, runs in the calling thread, waits, and returns nullptr. Otherwise enqueues the work and returns a fence
  // without waiting for it. The results are then in the memory of devices or in page-locked memory: the outputs are set before
  // the return, and may be read when the fence is reached. It still waits for steps that the host computes, and runs a model
  // to its end if its outputs have data-dependent shapes or are computed in host memory, if its runs must not overlap, if its
  // steps are operations of the engine, or if the session has no device with queues. On a named stream, an enqueued run is
  // also after the one that was enqueued there last. Fails with kBadInput if an output of an enqueued run is in plain host
  // memory, and with kApiMisuse for a fence of another runtime.
  absl::StatusOr<std::shared_ptr<RunFence>> Submit(const RunRequest& request, RunState& control);
  // The same for all outputs, and waits.
  absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control) {
    return Submit({.inputs = inputs, .outputs = outputs}, control).status();
  }
  // Submits the model as an operation of the runtime's engine on the session's device. The naive engine uses the calling
  // thread, others a worker: one of those for prioritized runs if control.priority is set. A session on cpu:default uses the
  // calling thread. On a named stream, the run starts after the earlier ones of this function. Calls `done` once, in that
  // thread, with the outputs. `control` must live until `done` has returned.
  void Post(OwnedRunRequest request, RunState& control, std::function<void(absl::Status, std::vector<HostValue>)> done);

  // Returns the number of bytes that all runs have copied between plain host memory and page-locked memory.
  uint64_t staged_bytes() const { return staged_bytes_.load(std::memory_order_relaxed); }
  // Returns the number of engine operations of the latest run: 1, or one per step if engine.bulk_inference is false. The
  // model's body plans run within them; a continuation adds its own.
  uint64_t operations() const { return operations_.load(std::memory_order_relaxed); }
  // Returns the names of all states. In a training session, kRandomState is one of them.
  std::vector<std::string> StateNames() const;
  // Returns a copy of the elements of a state, when no run is changing it. Fails with kBadInput if there is no such state. With
  // train.shard_optimizer, the states of the optimizer are divided over processes, which must then all call it.
  absl::StatusOr<Tensor> ReadState(const std::string& name);
  // Copies the elements to a state, when no run is using it. Fails with kBadInput if there is no such state, or it has another
  // type or shape.
  absl::Status WriteState(const std::string& name, const Tensor& elements);

  // Receives the inputs and outputs of each run that has ended well, as the request has them. Its error becomes that of the
  // run. Call it before the first run.
  using RunCheck = std::function<absl::Status(std::span<const HostValue> inputs, std::span<const HostValue> outputs,
                                              std::span<const int> places)>;
  void CheckRuns(RunCheck check) { check_ = std::move(check); }

 private:
  // Returns a state, or kBadInput with the names that there are.
  absl::StatusOr<const Value*> FindState(const std::string& name) const;
  struct Subset {
    std::vector<int> places;
    std::shared_ptr<Program> program;
  };
  Session() = default;
  absl::Status CheckRequest(const RunRequest& request) const;
  template <typename F>
  absl::Status WithControl(RunState& control, F run);
  // Returns the plan for the request's inputs and outputs. `created` is the place of outputs that the run creates.
  absl::StatusOr<std::shared_ptr<const Plan>> PlanOf(Program& program, const RunRequest& request, const IoPlace& created,
                                                     RunState& control);
  // Runs or enqueues a checked request behind `previous` (nullable).
  absl::StatusOr<std::shared_ptr<RunFence>> Execute(Program& program, const RunRequest& request,
                                                    const std::shared_ptr<RunFence>& previous, RunState& control);
  // Returns the program that computes these outputs only. The kMaxSubsets most recently used ones are kept.
  absl::StatusOr<std::shared_ptr<Program>> ProgramFor(std::span<const int> places);

  std::shared_ptr<Runtime> runtime_;
  onnx::ModelInfo info_;
  std::shared_ptr<Program> program_;
  std::shared_ptr<Replicas> replicas_;  // nullable
  std::vector<ValueType> output_types_;
  mutable std::mutex subsets_mutex_;
  std::list<Subset> subsets_;                    // most recent first; guarded by subsets_mutex_
  std::atomic<const Program*> latest_{nullptr};  // the program used last; one of a subset may be gone
  IoPlace created_;                              // where the caller gets outputs that runs create
  DeviceUse pinned_;                             // keeps its device; none: outputs in host memory are ordinary memory
  bool inline_ = false;                          // asynchronous runs use the calling thread
  std::shared_ptr<RunStream> stream_;            // of the session's device; nullptr: runs have no order
  std::atomic<uint64_t> staged_bytes_{0};
  std::atomic<uint64_t> operations_{0};
  std::shared_ptr<RunTurn> turn_ = std::make_shared<RunTurn>();  // of plans that run alone
  double default_timeout_s_ = 0;
  std::atomic<uint64_t> seed_{0};
  bool trains_ = false, evaluates_ = false;
  RunCheck check_;  // nullable
};

}  // namespace mge
