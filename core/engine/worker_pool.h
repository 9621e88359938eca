// SPDX-License-Identifier: Apache-2.0
// Threads that share one queue of operations of a dependency engine.
#pragma once

#include <memory>
#include <vector>

#include "core/base/thread.h"
#include "core/engine/engine_operation.h"

namespace mge {

// A pool of workers. Runs operations first in, first out, or by priority. Equal priorities run in the order of Add(). Idle
// workers sleep; one of them spins for about 20 us before.
class WorkerPool {
 public:
  // If the system refuses a thread, the pool has fewer workers. Throws std::system_error or std::bad_alloc if it has none.
  WorkerPool(DependencyEngine& engine, int workers, bool by_priority);
  // An operation may hold the last reference to the engine's owner. This destructor then runs on a thread of this pool.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Adds an operation. Throws std::bad_alloc if a pool by priority has no memory.
  void Add(EngineOperation* operation);
  // Returns whether no operation waits for a worker.
  bool Idle() const;

 private:
  struct State;
  static void Work(DependencyEngine& engine, State& state, WorkerPool* self);

  std::shared_ptr<State> state_;
  std::vector<Thread> threads_;
};

}  // namespace mge
