// SPDX-License-Identifier: Apache-2.0
#include "core/engine/dependency_engine.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/exception.h"

namespace mge {
namespace {

thread_local bool in_operation = false;  // true while this thread runs an operation of any engine

}  // namespace

// An operation that has not ended. It runs when all its accesses are granted. Everything that it needs is allocated here, so
// that later steps cannot fail for lack of memory.
struct DependencyEngine::Pending {
  // An entry in the queue of a variable.
  struct Access {
    Pending* pending;
    EngineVariable* variable;
    bool write;
    Access* next = nullptr;
  };

  explicit Pending(Operation given) : operation(std::move(given)), waits(1) {
    accesses.reserve(operation.reads.size() + operation.writes.size());
    for (const Variable& v : operation.reads) accesses.push_back({this, v.get(), false});
    for (const Variable& v : operation.writes) accesses.push_back({this, v.get(), true});
    waits += static_cast<int>(accesses.size());
  }

  Operation operation;
  std::vector<Access> accesses;
  std::atomic<int> waits;   // number of missing grants, plus one while Ask() requests them
  bool inherits = true;     // true: fails if a variable has an error; false for WaitForVariable()
  Pending* next = nullptr;  // next in a ReadyList
};

// A queue of operations, linked through Pending::next, so that it allocates nothing.
class DependencyEngine::ReadyList {
 public:
  void Add(Pending* pending) {
    pending->next = nullptr;
    (first_ ? last_->next : first_) = pending;
    last_ = pending;
  }
  Pending* Take() { return first_ ? std::exchange(first_, first_->next) : nullptr; }

 private:
  Pending *first_ = nullptr, *last_ = nullptr;
};

// A variable: a queue of accesses in the order of the pushes. Reads at its front are granted together, a write is granted
// alone.
class EngineVariable {
 public:
  using Pending = DependencyEngine::Pending;
  using Access = Pending::Access;
  using Failure = DependencyEngine::Failure;

  // Requests access. Returns true if it is granted at once.
  bool Append(Access& access) {
    std::lock_guard lock(mutex_);
    if (!first_ && !writing_ && (!access.write || readers_ == 0)) {
      Grant(access.write);
      return true;
    }
    (first_ ? last_->next : first_) = &access;
    last_ = &access;
    return false;
  }

  // Releases access. Adds the operations that become ready to `ready`.
  void Release(bool write, const Failure& failure, DependencyEngine::ReadyList& ready) {
    std::lock_guard lock(mutex_);
    if (write) {
      writing_ = false;
      ++version_;
      failure_ = failure;
    } else {
      --readers_;
    }
    while (first_ && !writing_ && (!first_->write || readers_ == 0)) {
      Access& access = *first_;
      first_ = access.next;
      Grant(access.write);
      if (access.pending->waits.fetch_sub(1) == 1) ready.Add(access.pending);
    }
  }

  Failure failure() {
    std::lock_guard lock(mutex_);
    return failure_;
  }
  Failure TakeFailure() {
    std::lock_guard lock(mutex_);
    return std::exchange(failure_, {});
  }
  uint64_t version() {
    std::lock_guard lock(mutex_);
    return version_;
  }

 private:
  void Grant(bool write) {
    if (write) {
      writing_ = true;
    } else {
      ++readers_;
    }
  }

  std::mutex mutex_;
  Access *first_ = nullptr, *last_ = nullptr;  // accesses that are not granted
  int readers_ = 0;
  bool writing_ = false;
  uint64_t version_ = 0;
  Failure failure_;
};

// Threads that share one queue of operations: first in, first out, or by priority. Equal priorities run in the order of
// Add().
class DependencyEngine::WorkerPool {
 public:
  WorkerPool(DependencyEngine& engine, int workers, bool by_priority)
      : by_priority_(by_priority), state_(std::make_shared<State>()) {
    threads_.reserve(static_cast<size_t>(workers));
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([&engine, state = state_] { Work(engine, *state); });
    } catch (const std::system_error&) {  // a limit on threads: on with those that there are
      if (threads_.empty()) throw;
    } catch (const std::bad_alloc&) {
      if (threads_.empty()) throw;
    }
  }
  // An operation may hold the last reference to the engine's owner. This destructor then runs on a thread of this pool.
  ~WorkerPool() {
    {
      std::lock_guard lock(state_->mutex);
      state_->stop = true;
    }
    state_->wake.notify_all();
    for (std::thread& t : threads_) {
      if (t.get_id() == std::this_thread::get_id()) {
        t.detach();
      } else {
        t.join();
      }
    }
  }
  void Add(Pending* pending) {
    {
      std::lock_guard lock(state_->mutex);
      state_->queue.push({by_priority_ ? pending->operation.priority : 0, state_->next++, pending});
    }
    state_->wake.notify_one();
  }

 private:
  struct Item {
    int priority;
    uint64_t order;
    Pending* pending;
    bool operator<(const Item& other) const {
      return priority != other.priority ? priority < other.priority : order > other.order;
    }
  };
  // The state that threads share. A detached thread keeps it alive after the pool was destroyed.
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    std::priority_queue<Item> queue;
    uint64_t next = 0;
    bool stop = false;
  };

  static void Work(DependencyEngine& engine, State& state) {
    std::unique_lock lock(state.mutex);
    while (true) {
      state.wake.wait(lock, [&] { return state.stop || !state.queue.empty(); });
      if (state.queue.empty()) return;
      Pending* pending = state.queue.top().pending;
      state.queue.pop();
      lock.unlock();
      engine.Execute(pending);  // may destroy the engine
      lock.lock();
    }
  }

  const bool by_priority_;
  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

// The handlers of fork() for all engines of the process.
class DependencyEngine::Forks {
 public:
  static Forks& Instance() {
    static Forks* forks = [] {
      auto* made = new Forks;  // never destroyed, since handlers of fork() cannot be removed
      pthread_atfork([] { Instance().Prepare(); }, [] { Instance().Resume(); }, [] { Instance().StartAfresh(); });
      return made;
    }();
    return *forks;
  }
  void Add(DependencyEngine* engine) {
    std::lock_guard lock(mutex_);
    engines_.push_back(engine);
  }
  void Remove(DependencyEngine* engine) {
    std::lock_guard lock(mutex_);
    std::erase(engines_, engine);
  }

 private:
  // Waits until no operation is pending, and blocks new ones until the fork has ended.
  void Prepare() {
    mutex_.lock();
    for (DependencyEngine* e : engines_) {
      std::unique_lock idle(e->finished_mutex_);
      if (!in_operation) e->finished_.wait(idle, [&] { return e->pending_ == 0; });
      idle.release();
      e->pools_mutex_.lock();
    }
  }
  void Resume() {
    for (DependencyEngine* e : engines_) {
      e->pools_mutex_.unlock();
      e->finished_mutex_.unlock();
    }
    mutex_.unlock();
  }
  // The child has none of the parent's threads. Leaks the pools: their mutexes may be locked, so they cannot be destroyed.
  void StartAfresh() {
    for (DependencyEngine* e : engines_) {
      for (auto& [name, pool] : e->pools_) (void)pool.release();
      e->pools_.clear();
    }
    Resume();
  }

  std::mutex mutex_;
  std::vector<DependencyEngine*> engines_;
};

DependencyEngine::DependencyEngine(const EngineOptions& options) : options_(options) {
  failures_.reserve(kMaxFailures);
  Forks::Instance().Add(this);
}

DependencyEngine::~DependencyEngine() {
  Forks::Instance().Remove(this);
  {
    std::unique_lock lock(finished_mutex_);
    finished_.wait(lock, [this] { return pending_ == 0; });
  }
  pools_.clear();
}

Variable DependencyEngine::NewVariable() { return std::make_shared<EngineVariable>(); }

uint64_t DependencyEngine::Version(const Variable& variable) { return variable->version(); }

void DependencyEngine::Push(Operation operation) {
  auto unique = [](std::vector<Variable>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  unique(operation.reads);
  unique(operation.writes);
  std::erase_if(operation.reads,
                [&](const Variable& v) { return std::binary_search(operation.writes.begin(), operation.writes.end(), v); });
  Ask(new Pending(std::move(operation)), false);
}

void DependencyEngine::Ask(Pending* pending, bool here) noexcept {
  {
    std::lock_guard lock(finished_mutex_);
    ++pending_;
  }
  int granted = 1;
  for (Pending::Access& access : pending->accesses) granted += access.variable->Append(access);
  if (pending->waits.fetch_sub(granted) != granted) return;  // another thread may have deleted it
  if (here || !Enqueue(pending)) Execute(pending);
}

bool DependencyEngine::Enqueue(Pending* pending) noexcept {
  if (options_.kind == EngineKind::kNaive) return false;
  try {
    PoolOf(pending->operation).Add(pending);
    return true;
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return false;
}

DependencyEngine::WorkerPool& DependencyEngine::PoolOf(const Operation& operation) {
  bool per_device = options_.kind == EngineKind::kThreadedPerDevice;
  bool by_priority = per_device && operation.prioritized;
  std::string key = !per_device ? "all" : by_priority ? "priority" : "device " + operation.device;
  int workers = !per_device ? options_.pool_workers : by_priority ? options_.priority_workers : options_.workers_per_device;
  std::lock_guard lock(pools_mutex_);
  auto& pool = pools_[key];
  if (!pool) pool = std::make_unique<WorkerPool>(*this, std::max(workers, 1), by_priority);
  return *pool;
}

// Runs an operation, then those that become ready and have no pool. A loop in place of recursion keeps the stack small for
// long chains.
void DependencyEngine::Execute(Pending* pending) noexcept {
  ReadyList here, done;
  here.Add(pending);
  while (Pending* next = here.Take()) {
    Run(*next, here);
    done.Add(next);
  }
  while (Pending* next = done.Take()) delete next;  // deleted last: may hold the last reference to the engine's owner
}

void DependencyEngine::Run(Pending& pending, ReadyList& here) {
  Failure failure;
  for (const Pending::Access& access : pending.accesses) {
    if (failure.status.ok() && pending.inherits) failure = access.variable->failure();
  }
  if (failure.status.ok()) {
    bool outer = std::exchange(in_operation, true);
    failure.status = NoThrow(pending.operation.run);
    in_operation = outer;
    if (!failure.status.ok()) Record(failure);
  }
  ReadyList released;
  for (const Pending::Access& access : pending.accesses) access.variable->Release(access.write, failure, released);
  while (Pending* next = released.Take()) {
    if (!Enqueue(next)) here.Add(next);
  }
  std::lock_guard lock(finished_mutex_);
  if (--pending_ == 0) finished_.notify_all();
}

void DependencyEngine::Record(Failure& failure) {
  std::lock_guard lock(finished_mutex_);
  failure.number = ++last_failure_;
  if (failures_.size() < kMaxFailures) failures_.push_back(failure);
}

absl::Status DependencyEngine::WaitForVariable(const Variable& variable) {
  // An operation that reads the variable. It runs in the thread that ends the last write before it, or in this one.
  std::mutex mutex;
  std::condition_variable done;
  bool reached = false;
  Operation look = {.run =
                        [&] {
                          std::lock_guard lock(mutex);
                          reached = true;
                          done.notify_all();
                          return absl::OkStatus();
                        },
                    .reads = {variable},
                    .prioritized = true};
  auto* pending = new Pending(std::move(look));
  pending->inherits = false;
  Ask(pending, true);
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return reached; });
  Failure failure = variable->TakeFailure();
  if (!failure.status.ok()) {
    std::lock_guard guard(finished_mutex_);
    std::erase_if(failures_, [&](const Failure& other) { return other.number == failure.number; });
  }
  return failure.status;
}

absl::Status DependencyEngine::WaitForAll() {
  std::unique_lock lock(finished_mutex_);
  finished_.wait(lock, [this] { return pending_ == 0; });
  absl::Status first = failures_.empty() ? absl::OkStatus() : failures_.front().status;
  failures_.clear();
  return first;
}

}  // namespace mge
