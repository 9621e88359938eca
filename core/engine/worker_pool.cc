// SPDX-License-Identifier: Apache-2.0
#include "core/engine/worker_pool.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <queue>
#include <system_error>

#include "core/engine/spin_lock.h"

namespace mge {
namespace {

constexpr int kLooks = 20;  // looks of an idle worker at its queue before it sleeps, about 20 us

// Waits about 1 us. More frequent looks would take the queue's cache line from the thread that adds operations.
inline void PauseMicrosecond() {
#if defined(__x86_64__)
  for (int i = 0; i < 40; ++i) __builtin_ia32_pause();
#endif
}

}  // namespace

// The state that threads share. A detached thread keeps it alive after the pool was destroyed.
struct WorkerPool::State {
  struct Item {
    int priority;
    uint64_t order;
    EngineOperation* operation;
    bool operator<(const Item& other) const {
      return priority != other.priority ? priority < other.priority : order > other.order;
    }
  };

  State(bool by_priority, bool alone) : by_priority(by_priority), alone(alone) {}
  void Push(EngineOperation* operation) {
    if (by_priority) {
      sorted.push({operation->priority, next++, operation});
    } else {
      queue.Add(operation);
    }
    waiting.store(waiting.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Returns one operation, or all of them if there is one worker, which need not share them.
  ReadyList Take() {
    ReadyList taken;
    if (alone && !by_priority) {
      waiting.store(0, std::memory_order_relaxed);
      std::swap(taken, queue);
      return taken;
    }
    waiting.store(waiting.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    if (by_priority) {
      taken.Add(sorted.top().operation);
      sorted.pop();
    } else {
      taken.Add(queue.Take());
    }
    return taken;
  }
  bool empty() const { return by_priority ? sorted.empty() : queue.empty(); }  // for holders of the lock

  // The members that Add() and Take() use are in one cache line.
  alignas(64) SpinLock lock;
  bool spinning = false;
  bool stop = false;
  const bool by_priority;
  const bool alone;  // there is one worker
  int sleepers = 0;
  std::atomic<int64_t> waiting{0};  // operations in the queue; written under the lock
  ReadyList queue;
  std::condition_variable_any wake;
  std::priority_queue<Item> sorted;  // if by_priority
  uint64_t next = 0;
};

WorkerPool::WorkerPool(DependencyEngine& engine, int workers, bool by_priority)
    : state_(std::make_shared<State>(by_priority, workers == 1)) {
  threads_.reserve(static_cast<size_t>(workers));
  try {
    for (int i = 0; i < workers; ++i) {
      threads_.emplace_back([&engine, state = state_, this] { Work(engine, *state, this); });
    }
  } catch (const std::system_error&) {  // a limit on threads: on with those that there are
    if (threads_.empty()) throw;
  } catch (const std::bad_alloc&) {
    if (threads_.empty()) throw;
  }
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(state_->lock);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (Thread& t : threads_) {
    if (t.IsCurrent()) {
      t.detach();
    } else {
      t.join();
    }
  }
}

void WorkerPool::Add(EngineOperation* operation) {
  bool wake = false;
  {
    std::lock_guard lock(state_->lock);
    state_->Push(operation);
    wake = state_->sleepers > 0 && !(state_->spinning && state_->waiting.load(std::memory_order_relaxed) == 1);
  }
  if (wake) state_->wake.notify_one();
}

bool WorkerPool::Idle() const { return state_->waiting.load(std::memory_order_relaxed) == 0; }

void WorkerPool::Work(DependencyEngine& engine, State& state, WorkerPool* self) {
  std::unique_lock lock(state.lock);
  while (true) {
    if (state.empty() && !state.stop && !state.spinning) {
      state.spinning = true;
      lock.unlock();
      for (int i = 0; i < kLooks && state.waiting.load(std::memory_order_relaxed) == 0; ++i) PauseMicrosecond();
      lock.lock();
      state.spinning = false;
    }
    while (state.empty() && !state.stop) {
      ++state.sleepers;
      state.wake.wait(lock);
      --state.sleepers;
    }
    if (state.empty()) return;
    ReadyList taken = state.Take();
    lock.unlock();
    engine.Execute(taken, self);  // may destroy the engine and the pool
    lock.lock();
  }
}

}  // namespace mge
