// SPDX-License-Identifier: Apache-2.0
// The dependency engine: runs operations in an order that respects what they read and write.
//
// An operation names the variables that it reads and those that it writes. Reads of a variable run side by side, a write is
// alone, and the order for each variable is the order of the pushes. The semantics are those of MXNet's engine
// (T. Chen et al., "MXNet: A Flexible and Efficient Machine Learning Library", 2015):
//   kNaive              operations run in the thread that pushes them
//   kThreaded           one pool for everything
//   kThreadedPerDevice  a pool per device, one with priorities for prioritized operations
// An error of an operation, or an exception of it, travels to the variables that it writes: operations that read them
// inherit it and are skipped. An operation that finds no thread, for want of memory, runs in the one that it waited for.
// WaitForVariable() hands it out once.
//
// fork() waits until no operation is on its way (one that is forking itself is not waited for). The child has the engine
// without the parent's threads; it starts its own at first use.
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

struct EngineOptions {
  EngineKind kind = EngineKind::kThreadedPerDevice;
  int workers_per_device = 1;  // kThreadedPerDevice
  int priority_workers = 4;    // kThreadedPerDevice: of the one pool for prioritized operations
  int pool_workers = 16;       // kThreaded
};

class EngineVariable;
using Variable = std::shared_ptr<EngineVariable>;

struct Operation {
  std::function<absl::Status()> run;
  std::vector<Variable> reads = {};
  std::vector<Variable> writes = {};  // a variable in both lists counts as written
  std::string device = {};            // which pool: "cpu0"
  int priority = 0;                   // higher first; prioritized operations only
  bool prioritized = false;
};

// Safe on any thread. Its destructor waits for all operations.
class DependencyEngine {
 public:
  explicit DependencyEngine(const EngineOptions& options);
  ~DependencyEngine();
  DependencyEngine(const DependencyEngine&) = delete;
  DependencyEngine& operator=(const DependencyEngine&) = delete;

  EngineKind kind() const { return options_.kind; }
  static Variable NewVariable();

  // Returns at once, but for kNaive, which has run the operation by then.
  void Push(Operation operation);

  // Waits until everything pushed so far that writes the variable is done; its error, once.
  absl::Status WaitForVariable(const Variable& variable);

  // Waits until nothing is left; the first error that nobody has been told of. Variables keep theirs.
  absl::Status WaitForAll();

  // Writes done to a variable so far.
  static uint64_t Version(const Variable& variable);

 private:
  friend class EngineVariable;
  struct Pending;
  class ReadyList;
  class WorkerPool;
  class Forks;

  void Ask(Pending* pending, bool here) noexcept;  // `here`: if all variables are granted at once, it runs in this thread
  bool Enqueue(Pending* pending) noexcept;         // false: there is no pool for it, and it is to be run by the caller
  void Execute(Pending* pending) noexcept;
  void Run(Pending& pending, ReadyList& here);
  WorkerPool& PoolOf(const Operation& operation);

  const EngineOptions options_;
  std::mutex pools_mutex_;
  std::map<std::string, std::unique_ptr<WorkerPool>> pools_;

  std::mutex finished_mutex_;
  std::condition_variable finished_;
  int64_t pending_ = 0;
  absl::Status first_error_;
};

}  // namespace mge
