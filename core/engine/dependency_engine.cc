// SPDX-License-Identifier: Apache-2.0
#include "core/engine/dependency_engine.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace mge {
namespace {

thread_local bool in_operation = false;  // of an engine, on this thread

}  // namespace

// An operation on its way: it runs when every variable has granted access.
struct DependencyEngine::Pending {
  Operation operation;
  std::atomic<int> waits{0};
  bool inherits = true;  // errors of its variables; false for waits, which only look
};

// Accesses in the order of pushes. Reads at the front of the queue run together; a write at the front runs alone.
class EngineVariable {
 public:
  using Pending = DependencyEngine::Pending;

  // Asks for access; true if it is granted at once.
  bool Append(Pending* pending, bool write) {
    std::lock_guard lock(mutex_);
    if (queue_.empty() && !writing_ && (!write || readers_ == 0)) {
      Grant(pending, write);
      return true;
    }
    queue_.push_back({pending, write});
    return false;
  }

  // Gives access back; what may run now is appended to `ready`.
  void Release(bool write, const absl::Status& status, std::vector<Pending*>& ready) {
    std::lock_guard lock(mutex_);
    if (write) {
      writing_ = false;
      ++version_;
      error_ = status;
    } else {
      --readers_;
    }
    while (!queue_.empty() && !writing_ && (!queue_.front().write || readers_ == 0)) {
      Access next = queue_.front();
      queue_.pop_front();
      Grant(next.pending, next.write);
      ready.push_back(next.pending);
    }
  }

  absl::Status error() {
    std::lock_guard lock(mutex_);
    return error_;
  }
  absl::Status TakeError() {
    std::lock_guard lock(mutex_);
    return std::exchange(error_, absl::OkStatus());
  }
  uint64_t version() {
    std::lock_guard lock(mutex_);
    return version_;
  }

 private:
  struct Access {
    Pending* pending;
    bool write;
  };
  void Grant(Pending*, bool write) {
    if (write) {
      writing_ = true;
    } else {
      ++readers_;
    }
  }

  std::mutex mutex_;
  std::deque<Access> queue_;
  int readers_ = 0;
  bool writing_ = false;
  uint64_t version_ = 0;
  absl::Status error_;
};

// Threads over one queue: first in first out, or by priority (equal ones in order).
class DependencyEngine::WorkerPool {
 public:
  WorkerPool(DependencyEngine& engine, int workers, bool by_priority)
      : by_priority_(by_priority), state_(std::make_shared<State>()) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([&engine, state = state_] { Work(engine, *state); });
  }
  // An operation may hold the last reference to what owns the engine: then this runs on one of its own threads.
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
  // Outlives the pool in a thread that is detached.
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
      engine.Execute(pending);  // the engine may be gone when this returns
      lock.lock();
    }
  }

  const bool by_priority_;
  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

// What happens to all engines of the process when it forks.
class DependencyEngine::Forks {
 public:
  static Forks& Instance() {
    static Forks* forks = [] {
      auto* made = new Forks;  // handlers cannot be taken back
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
  // Nothing is on its way, and nothing begins, until the fork is over.
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
  // The parent's workers do not exist here. What they left is not touched, not even to free it.
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

DependencyEngine::DependencyEngine(const EngineOptions& options) : options_(options) { Forks::Instance().Add(this); }

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
  std::erase_if(operation.reads, [&](const Variable& v) {
    return std::binary_search(operation.writes.begin(), operation.writes.end(), v);
  });
  auto* pending = new Pending;
  pending->operation = std::move(operation);
  const Operation& op = pending->operation;
  pending->waits = static_cast<int>(op.reads.size() + op.writes.size()) + 1;
  {
    std::lock_guard lock(finished_mutex_);
    ++pending_;
  }
  int granted = 1;
  for (const Variable& v : op.reads) granted += v->Append(pending, false);
  for (const Variable& v : op.writes) granted += v->Append(pending, true);
  if (pending->waits.fetch_sub(granted) == granted) Ready(pending);
}

void DependencyEngine::Ready(Pending* pending) {
  if (options_.kind == EngineKind::kNaive) return Execute(pending);
  PoolOf(pending->operation).Add(pending);
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

void DependencyEngine::Execute(Pending* pending) {
  absl::Status status;
  for (const std::vector<Variable>* list : {&pending->operation.reads, &pending->operation.writes}) {
    for (const Variable& v : *list) {
      if (status.ok() && pending->inherits) status = v->error();
    }
  }
  if (status.ok()) {
    bool outer = std::exchange(in_operation, true);
    status = pending->operation.run();
    in_operation = outer;
  }
  Complete(pending, std::move(status));
}

void DependencyEngine::Complete(Pending* pending, absl::Status status) {
  std::unique_ptr<Pending> owned(pending);  // goes last: it may hold the last reference to the engine's owner
  std::vector<Pending*> released;
  for (const Variable& v : owned->operation.reads) v->Release(false, status, released);
  for (const Variable& v : owned->operation.writes) v->Release(true, status, released);
  for (Pending* p : released) {
    if (p->waits.fetch_sub(1) == 1) Ready(p);
  }
  std::lock_guard lock(finished_mutex_);
  if (!status.ok() && first_error_.ok()) first_error_ = status;
  if (--pending_ == 0) finished_.notify_all();
}

absl::Status DependencyEngine::WaitForVariable(const Variable& variable) {
  // An operation that reads the variable, run by whoever finishes the last write before it.
  std::mutex mutex;
  std::condition_variable done;
  bool reached = false;
  auto* pending = new Pending;
  pending->inherits = false;
  pending->operation.reads = {variable};
  pending->operation.prioritized = true;
  pending->operation.run = [&] {
    std::lock_guard lock(mutex);
    reached = true;
    done.notify_all();
    return absl::OkStatus();
  };
  pending->waits = 2;
  {
    std::lock_guard lock(finished_mutex_);
    ++pending_;
  }
  int granted = 1 + variable->Append(pending, false);
  if (pending->waits.fetch_sub(granted) == granted) Execute(pending);
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return reached; });
  absl::Status status = variable->TakeError();
  if (!status.ok()) {
    std::lock_guard guard(finished_mutex_);
    first_error_ = absl::OkStatus();
  }
  return status;
}

absl::Status DependencyEngine::WaitForAll() {
  std::unique_lock lock(finished_mutex_);
  finished_.wait(lock, [this] { return pending_ == 0; });
  return std::exchange(first_error_, absl::OkStatus());
}

}  // namespace mge
