// SPDX-License-Identifier: Apache-2.0
// Eager mode: runs single operators at once.
//
//   auto eager = *EagerInterpreter::Create(runtime);
//   EagerTensorPtr x = *eager->Put(array, "gpu0");
//   EagerTensorPtr y = (*eager->Apply({.op = "Relu"}, {&x, 1}))[0];
//   HostValue result = *eager->Get(*y);
//
// A call appends a command to a queue and returns; a worker thread executes the commands in order (settings eager.*). Names,
// attributes, types and shapes are checked in the call, as far as they are known. Errors of the execution arrive when the
// result is read. If eager.async_level is sync, the calling thread executes its commands itself and gets their errors.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/thread.h"
#include "core/eager/command_queue.h"
#include "core/eager/eager_operator.h"
#include "core/eager/eager_value.h"
#include "core/eager/operator_cache.h"
#include "core/engine/run_observer.h"
#include "core/engine/runtime.h"

namespace mge {

class EagerInterpreter;
class EagerTape;

// A handle of a value. Immutable; keeps the interpreter alive.
class EagerTensor {
 public:
  EagerTensor(std::shared_ptr<EagerInterpreter> interpreter, std::shared_ptr<EagerValue> value)
      : interpreter_(std::move(interpreter)), value_(std::move(value)) {}
  ~EagerTensor();
  EagerTensor(const EagerTensor&) = delete;
  EagerTensor& operator=(const EagerTensor&) = delete;

  EagerInterpreter& interpreter() const { return *interpreter_; }
  const std::shared_ptr<EagerValue>& value() const { return value_; }
  EagerState state() const { return value_->state(); }
  bool is_host_operand() const { return value_->place() == nullptr; }

 private:
  const std::shared_ptr<EagerInterpreter> interpreter_;
  std::shared_ptr<EagerValue> value_;
};
using EagerTensorPtr = std::shared_ptr<const EagerTensor>;  // nullptr in a list of inputs: absent

// Calls `run` with an observer of that run, which nobody keeps after the call, and returns its status. For profiles.
using RunWatch = std::function<absl::Status(Session& session, const std::function<absl::Status(RunObserver*)>& run)>;

// The settings that an interpreter reads once.
struct EagerOptions {
  AsyncLevel async_level = AsyncLevel::kAsync;
  size_t queue_size = 10'000;
  bool catch_errors = true;
  bool drop = false, record_paths = false, swap = false, auto_drop = false;
};

struct EagerCounters {
  int64_t commands = 0, runs = 0;                // executed commands; runs of operators, recomputations included
  int64_t operators = 0, operators_created = 0;  // in the cache; since the beginning
  int64_t queue_peak = 0;                        // the most commands that waited
  int64_t live_bytes = 0, peak_bytes = 0;        // memory of eager tensors
  int64_t evictions = 0, drops = 0, recomputations = 0, swaps_out = 0, swaps_in = 0;
};

// Thread-safe.
class EagerInterpreter : public std::enable_shared_from_this<EagerInterpreter> {
 public:
  // Reads the settings. Starts no thread. `watch`, if any, observes the runs of operators.
  static absl::StatusOr<std::shared_ptr<EagerInterpreter>> Create(std::shared_ptr<Runtime> runtime, RunWatch watch = {});
  // Waits for the command that is being executed. Discards the others, whose results cannot be read any more.
  ~EagerInterpreter();

  const EagerOptions& options() const { return options_; }
  const std::shared_ptr<Runtime>& runtime() const { return runtime_; }

  // Creates a tensor with a copy of the elements on these devices, such as "gpu0" or "gpu0,cpu0"; "": the thread's context.
  // Fails with the errors of Runtime::ResolveDevice().
  absl::StatusOr<EagerTensorPtr> Put(const HostValue& value, std::string_view devices = "");
  // Creates a host operand: it has no device, and operators read it on those of their other inputs. Shares the memory.
  EagerTensorPtr HostOperand(HostValue value);

  // Calls an operator on the devices of its inputs. If all are host operands or there are none, uses `devices`, or the
  // thread's context. Fails with kBadInput if the inputs are on different devices, and if the operator refuses the inputs.
  absl::StatusOr<std::vector<EagerTensorPtr>> Apply(const OperatorRequest& request, std::span<const EagerTensorPtr> inputs,
                                                    std::string_view devices = "");
  // Calls an operator that has been created. `place` are its devices.
  absl::StatusOr<std::vector<EagerTensorPtr>> ApplyCreated(std::shared_ptr<EagerOperator> op,
                                                           std::shared_ptr<EagerPlace> place,
                                                           std::span<const EagerTensorPtr> inputs);

  // Waits until the tensor is ready, and returns its value, which shares the memory. An evicted one is recomputed. Fails with
  // the error of the operator that should have computed it.
  absl::StatusOr<HostValue> Get(const EagerTensor& tensor);
  // Waits until the tensor is computed. Fails like Get(). Does not bring back an evicted one.
  absl::Status Wait(const EagerTensor& tensor);
  // Returns the type with all sizes. Waits if they are not known. Fails like Get().
  absl::StatusOr<ValueType> TypeOf(const EagerTensor& tensor);
  // Waits for all commands that were given before. Fails with the first error since the last call of this function.
  absl::Status Synchronize();

  // Releases the tensor's memory; it is recomputed when it is needed. Needs eager.drop, else fails with kApiMisuse. Ignored
  // with a warning if no path to recompute it is recorded (eager.record_computing_path).
  absl::Status Drop(const EagerTensor& tensor);
  // Moves the elements to host memory until they are needed, or back. Needs eager.swap, else fails with kApiMisuse.
  absl::Status SwapOut(const EagerTensor& tensor);
  absl::Status SwapIn(const EagerTensor& tensor);

  EagerCounters counters() const;

  // ---- for EagerTape and EagerTensor
  void Attach(std::shared_ptr<EagerTape> tape);
  void Detach(const EagerTape* tape);
  bool IsAttached(const EagerTape* tape);
  // Waits until the element type and the rank of a tensor are known, and its operator too. Fails if it failed.
  absl::Status WaitForType(const EagerTensor& tensor);
  void Released(std::shared_ptr<EagerValue> value);
  bool RecordsPaths() const { return options_.drop && options_.record_paths; }

 private:
  // The result of the command kFetch. Guarded by store_->mutex.
  struct Fetched {
    bool done = false;
    absl::Status status;
    HostValue value;
  };
  struct Command {
    enum class Kind { kCall, kPut, kReleased, kDrop, kSwapOut, kFetch } kind = Kind::kCall;
    std::shared_ptr<EagerCall> call = {};
    std::shared_ptr<EagerValue> value = {};
    HostValue host = {};
    std::shared_ptr<Fetched> fetched = {};
  };

  EagerInterpreter(std::shared_ptr<Runtime> runtime, RunWatch watch)
      : runtime_(std::move(runtime)), watch_(std::move(watch)) {}
  absl::StatusOr<std::shared_ptr<EagerPlace>> PlaceOf(std::string_view devices);
  absl::StatusOr<std::vector<EagerTensorPtr>> Submit(std::shared_ptr<EagerCall> call, size_t outputs,
                                                     const std::vector<ValueType>& types,
                                                     std::span<const EagerTensorPtr> inputs);
  std::vector<std::shared_ptr<EagerTape>> Tapes();

  // Enqueues a command for the worker, or executes it at level 0 and returns its error.
  absl::Status Enqueue(Command command, bool beyond_limit = false);
  absl::Status StartWorker();
  void Work();
  // Waits until `done` is true. It is called with the lock of the store.
  void WaitUntil(const std::function<bool()>& done);
  absl::Status WaitForValue(EagerValue& value);

  // ---- executing commands: one thread at a time
  absl::Status Execute(Command& command);
  // Returns the status of f(). Exceptions become a status, unless they shall end the process.
  template <typename F>
  absl::Status Guarded(F f);
  // If an input has failed, sets `cause` to the error of the first operator that failed.
  absl::Status ExecuteCall(EagerCall& call, const std::shared_ptr<EagerCall>& shared, absl::Status& cause);
  absl::Status ExecutePut(EagerValue& value, const HostValue& host);
  absl::Status CopyToPlace(EagerValue& value, const HostValue& host);
  absl::Status ExecuteDrop(EagerValue& value);
  absl::Status ExecuteSwapOut(EagerValue& value);
  void ExecuteReleased(EagerValue& value);
  absl::Status Resolve(EagerCall& call);
  // Returns whether the host computes a call in place of the device (plan.host_compute), and computes it there.
  bool IsForHost(EagerCall& call);
  absl::Status RunOnHost(EagerCall& call);
  // Runs the operator on inputs that are in memory.
  absl::StatusOr<std::vector<HostValue>> RunCall(EagerCall& call);
  uint64_t SeedOfRun(int64_t run) const;
  // Brings a dropped or swapped value back into memory.
  absl::Status Fetch(EagerValue& value);
  absl::Status Recompute(EagerValue& value);
  absl::Status Upload(EagerValue& value);
  // Makes the outputs of a call ready, and records how they were computed.
  void Finish(EagerCall& call, const std::shared_ptr<EagerCall>& shared, std::vector<HostValue> results);
  void Record(EagerCall& call, const std::shared_ptr<EagerCall>& shared);
  // Counts the work of an operator, and marks its values as used. The caller holds the lock of the store.
  double CountWork(EagerCall& call, std::span<EagerValue* const> outputs);
  // Evicts values until the memory in use is not above the threshold, or nothing is left to evict.
  void EvictToThreshold();
  bool EvictOne();
  // Evicts the candidate with the lowest score. Returns false if there is none. The caller holds the lock of the store.
  bool EvictBest(int64_t minimum);
  void Pin(std::span<const std::shared_ptr<EagerValue>> values, int by);

  // Runs a session once, watched if the interpreter has a watch.
  absl::Status Run(Session& session, std::span<HostValue> inputs, std::span<HostValue> outputs, RunState& control);

  const std::shared_ptr<Runtime> runtime_;
  const RunWatch watch_;
  EagerOptions options_;
  const std::shared_ptr<EagerStore> store_ = std::make_shared<EagerStore>();
  OperatorCache cache_;

  std::mutex places_mutex_;
  std::unordered_map<std::string, std::shared_ptr<EagerPlace>> places_;  // guarded by places_mutex_

  std::mutex tapes_mutex_;
  std::vector<std::shared_ptr<EagerTape>> tapes_;  // guarded by tapes_mutex_
  std::atomic<int> tape_count_{0};

  std::mutex worker_mutex_;
  Thread worker_;  // guarded by worker_mutex_
  std::atomic<bool> started_{false};
  int64_t worker_process_ = 0;
  std::unique_ptr<CommandQueue<Command>> queue_;
  std::atomic<int64_t> given_{0};

  std::mutex execution_;               // held while a command is executed
  EagerPlace* evicting_on_ = nullptr;  // the place of the first candidate; guarded by execution_
  std::atomic<int64_t> executed_{0}, runs_{0};
  absl::Status first_error_;  // since the last Synchronize(); guarded by store_->mutex
};

}  // namespace mge
