// SPDX-License-Identifier: Apache-2.0
// The dependency engine: runs operations in the order that their reads and writes require.
//
// Asynchronous operations on shared data would need locks or explicit dependencies, and both are easy to get wrong. Here an
// operation names the variables that it reads and those that it writes, and the engine derives the order. The semantics are
// those of MXNet's engine (T. Chen et al., "MXNet: A Flexible and Efficient Machine Learning Library for Heterogeneous
// Distributed Systems", 2015). Algorithm:
//   1. Each variable has a queue of accesses, in the order of the pushes. Reads at its front are granted together. A write
//      is granted alone.
//   2. An operation counts the accesses that are not granted. At zero it goes to a thread pool.
//   3. When the operation ends, it releases its accesses, which grants others.
//
// The kind of engine chooses the thread:
//   kNaive              the thread that pushes the operation, or that releases the last access
//   kThreaded           one pool for all operations
//   kThreadedPerDevice  one pool per device, and one pool with priorities for prioritized operations
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
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/status.h"

namespace mge {

enum class EngineKind { kNaive, kThreaded, kThreadedPerDevice };

// The kind of an engine and the sizes of its pools.
struct EngineOptions {
  EngineKind kind = EngineKind::kThreadedPerDevice;
  int workers_per_device = 1;  // kThreadedPerDevice
  int priority_workers = 4;    // kThreadedPerDevice: threads of the pool for prioritized operations
  int pool_workers = 16;       // kThreaded
};

class EngineVariable;
using Variable = std::shared_ptr<EngineVariable>;

// A function with the variables that it reads and writes.
struct Operation {
  std::function<absl::Status()> run;  // may throw; the exception becomes an error
  std::vector<Variable> reads = {};
  std::vector<Variable> writes = {};  // a variable in both lists counts as written
  std::string device = {};            // the pool: "cpu0"
  int priority = 0;                   // higher first; for prioritized operations only
  bool prioritized = false;
};

// An engine. Safe on any thread. Its destructor waits for all operations.
class DependencyEngine {
 public:
  explicit DependencyEngine(const EngineOptions& options);
  ~DependencyEngine();
  DependencyEngine(const DependencyEngine&) = delete;
  DependencyEngine& operator=(const DependencyEngine&) = delete;

  EngineKind kind() const { return options_.kind; }
  static Variable NewVariable();

  // Adds an operation. Returns at once. With kNaive, runs the operation first if its variables are free.
  void Push(Operation operation);

  // Waits until all writes of the variable that were pushed before this call have ended. Returns the variable's error and
  // clears it.
  absl::Status WaitForVariable(const Variable& variable);

  // Waits until there is no operation. Returns the first error that no wait has returned, and forgets the others. Variables
  // keep their errors.
  absl::Status WaitForAll();

  // Returns the number of writes of a variable that have ended.
  static uint64_t Version(const Variable& variable);

 private:
  friend class EngineVariable;
  struct Pending;
  // An error of an operation. Operations that inherit the error keep its number.
  struct Failure {
    absl::Status status;
    uint64_t number = 0;
  };
  static constexpr size_t kMaxFailures = 64;
  class ReadyList;
  class WorkerPool;
  class Forks;

  // Requests all accesses of an operation. If they are granted at once, enqueues it, or runs it in this thread if `here` is
  // true.
  void Ask(Pending* pending, bool here) noexcept;
  // Adds a ready operation to its pool. Returns false if there is no pool; the caller then runs the operation.
  bool Enqueue(Pending* pending) noexcept;
  // Runs an operation and deletes it.
  void Execute(Pending* pending) noexcept;
  // Runs an operation and releases its accesses. Adds operations that became ready and have no pool to `here`.
  void Run(Pending& pending, ReadyList& here);
  // Gives the error a number and stores it for WaitForAll().
  void Record(Failure& failure);
  // Returns the pool for an operation. Creates it at the first use.
  WorkerPool& PoolOf(const Operation& operation);

  const EngineOptions options_;
  std::mutex pools_mutex_;
  std::map<std::string, std::unique_ptr<WorkerPool>> pools_;

  std::mutex finished_mutex_;
  std::condition_variable finished_;
  int64_t pending_ = 0;            // operations that have not ended
  uint64_t last_failure_ = 0;      // number of the latest error
  std::vector<Failure> failures_;  // errors that no wait has returned, oldest first; at most kMaxFailures
};

}  // namespace mge
