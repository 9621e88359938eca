// SPDX-License-Identifier: Apache-2.0
// The dependency engine: runs operations in the order that their reads and writes require.
//
// Asynchronous operations on shared data would need locks or explicit dependencies, and both are easy to get wrong. Here an
// operation names the variables that it reads and those that it writes, and the engine derives the order. The semantics are
// those of MXNet's engine (T. Chen et al., "MXNet: A Flexible and Efficient Machine Learning Library for Heterogeneous
// Distributed Systems", 2015). Algorithm:
//   1. Each variable has a queue of accesses, in the order of the pushes. Reads at its front are granted together. A write
//      is granted alone.
//   2. An operation counts the accesses that are not granted. At zero it goes to a pool of threads (worker_pool.h).
//   3. When the operation ends, it releases its accesses, which grants others. The thread continues with one of the
//      operations that became ready, if it belongs to the same pool and no other operation waits there.
//
// The kind of engine chooses the thread:
//   kNaive              the thread that pushes the operation, or that releases the last access
//   kThreaded           one pool for all operations, and one thread for copies
//   kThreadedPerDevice  pools of each device, and one pool with priorities for prioritized operations
// If a pool cannot be created because memory or threads are exhausted, the operation runs in the thread that made it ready.
//
// An error or exception of an operation is stored in the variables that it writes. Operations that read or write such a
// variable are skipped and pass the error on. WaitForVariable() returns it once and clears it.
//
// fork() waits until no operation is pending. It does not wait if it is called within an operation. The child has the same
// engine without the parent's threads. It starts its own threads at the first use.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/status.h"

namespace mge {

enum class EngineKind { kNaive, kThreaded, kThreadedPerDevice };

// The kind of an engine and the sizes of its pools.
struct EngineOptions {
  EngineKind kind = EngineKind::kThreadedPerDevice;
  int cpu_workers = 1;       // kThreadedPerDevice: threads of each CPU, and as many for runs
  int priority_workers = 4;  // kThreadedPerDevice: threads of the pool for prioritized operations
  int gpu_workers = 2;       // kThreadedPerDevice: threads of each device with queues, and as many for runs
  int gpu_copy_workers = 2;  // kThreadedPerDevice: threads for the copies of each device with queues
  int pool_workers = 16;     // kThreaded
  // Returns cpu_workers of a forked child. Called before the fork. Empty: that of the parent.
  std::function<int()> fork_workers = nullptr;
};

class EngineVariable;
struct EngineFailure;
struct EngineOperation;
class ReadyList;
class WorkerPool;
using Variable = std::shared_ptr<EngineVariable>;

// The kind of work of an operation, which chooses its pool.
enum class Work : uint8_t {
  kCpu,
  kDevice,     // on a device with queues
  kCopy,       // a copy from or to a device with queues; these run by priority
  kCpuRun,     // a run of a plan. It may push operations and wait for them, so it has threads of its own
  kDeviceRun,  // a run on a device with queues
};

// A function with the variables that it reads and writes.
struct Operation {
  std::function<absl::Status()> run;  // may throw; the exception becomes an error
  absl::InlinedVector<Variable, 2> reads = {};
  absl::InlinedVector<Variable, 2> writes = {};  // a variable in both lists counts as written
  std::string device = {};                       // the pool: "cpu0"
  Work work = Work::kCpu;
  int priority = 0;  // higher first; for copies and prioritized operations only
  bool prioritized = false;
};

// An operation that is made once and may be pushed many times. Pushing it allocates nothing. Must not be destroyed or pushed
// again before it has ended. It may outlive the engine.
class PreparedOperation {
 public:
  PreparedOperation() = default;
  explicit PreparedOperation(Operation operation);
  PreparedOperation(PreparedOperation&&) noexcept;
  PreparedOperation& operator=(PreparedOperation&&) noexcept;
  ~PreparedOperation();

 private:
  friend class DependencyEngine;
  std::unique_ptr<EngineOperation> operation_;
  std::string device_;
};

// Prepared operations for which one thread waits.
class OperationGroup {
 public:
  // Starts to count. `count` operations must then be pushed with this group.
  void Begin(int64_t count);
  // Waits until they have ended.
  void Wait();

 private:
  friend class DependencyEngine;
  void EndOne();
  std::atomic<int64_t> left_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = true;
};

// An engine. Safe on any thread. Its destructor waits for all operations.
class DependencyEngine {
 public:
  explicit DependencyEngine(EngineOptions options);
  ~DependencyEngine();
  DependencyEngine(const DependencyEngine&) = delete;
  DependencyEngine& operator=(const DependencyEngine&) = delete;

  EngineKind kind() const { return options_.kind; }
  // Returns the number of operations of one CPU that can run at the same time.
  int cpu_workers() const;
  static Variable NewVariable();
  // Returns whether this thread runs an operation that is not a run. It must not wait for other operations.
  static bool InOperation();
  // Returns whether this thread runs an operation that is a run.
  static bool InRun();

  // Adds an operation. Returns at once. With kNaive, runs the operation first if its variables are free.
  void Push(Operation operation);
  void Push(PreparedOperation& operation, OperationGroup& group, int priority, bool prioritized);

  // Waits until all writes of the variable that were pushed before this call have ended. Returns the variable's error and
  // clears it.
  absl::Status WaitForVariable(const Variable& variable);

  // Waits until there is no operation. Returns the first error that a variable still has or that no variable received, and
  // forgets the others. Variables keep their errors.
  absl::Status WaitForAll();

  // Returns the number of writes of a variable that have ended.
  static uint64_t Version(const Variable& variable);

 private:
  friend class WorkerPool;
  class Forks;
  struct NamedPool;
  static constexpr size_t kMaxFailures = 64;  // limit of the errors that no variable has any more

  // Counts an operation. Waits while another thread forks.
  void Count();
  // Requests all accesses of an operation. If they are granted at once, adds it to its pool, or runs it in this thread if it
  // has none.
  void Ask(EngineOperation* operation) noexcept;
  // Adds an operation to a pool (nullable). Returns false if that is impossible; the caller then runs the operation.
  static bool Add(WorkerPool* pool, EngineOperation* operation) noexcept;
  // Returns the pool for work of a device. Creates it at the first use. Returns nullptr if there is none.
  WorkerPool* PoolOf(Work work, bool prioritized, std::string_view device) noexcept;
  // Runs operations, and those that this thread continues with. Deletes those that were not prepared. `pool` is the thread's
  // pool, or nullptr.
  void Execute(ReadyList operations, WorkerPool* pool) noexcept;
  // Counts operations that have ended.
  void Uncount(int64_t operations);
  // Returns whether all operations have ended. For holders of finished_mutex_.
  bool Idle() const { return ended_.load() == pushed_.load(); }
  // Runs an operation and releases its accesses. Adds operations that this thread must run to `here`.
  void Run(EngineOperation& operation, WorkerPool* pool, bool continues, ReadyList& here);
  // Calls visit() with access to the variable, after the operations pushed before that conflict with it. Waits for that.
  void Visit(const Variable& variable, bool write, const std::function<void()>& visit);
  // Returns an error with this status. It cannot fail: without memory, returns `no_memory_`.
  std::shared_ptr<EngineFailure> NewFailure(absl::Status status) noexcept;
  // Counts variables that are about to get the error, and lists it for WaitForAll().
  void List(const std::shared_ptr<EngineFailure>& failure, int carriers) noexcept;

  const EngineOptions options_;
  std::atomic<int> cpu_workers_;
  int fork_workers_ = 0;  // set before a fork, for the child
  std::mutex pools_mutex_;
  std::atomic<NamedPool*> pools_{nullptr};  // a list; pools_mutex_ guards additions

  // Operations that have been pushed, and those that have ended. Threads that push and workers write different cache lines.
  // The numbers become equal under finished_mutex_ only.
  alignas(64) std::atomic<int64_t> pushed_{0};
  std::atomic<bool> forking_{false};
  alignas(64) std::atomic<int64_t> ended_{0};
  alignas(64) std::mutex finished_mutex_;
  std::condition_variable finished_;
  std::vector<std::shared_ptr<EngineFailure>> failures_;  // oldest first; guarded by finished_mutex_
  const std::shared_ptr<EngineFailure> no_memory_;
};

}  // namespace mge
