// SPDX-License-Identifier: Apache-2.0
#include "core/engine/dependency_engine.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/exception.h"
#include "core/engine/block_cache.h"
#include "core/engine/engine_operation.h"
#include "core/engine/worker_pool.h"

namespace mge {
namespace {

enum class Running { kNothing, kRun, kOther };
thread_local Running running = Running::kNothing;  // the operation of any engine that this thread runs

// The number of operations after which a thread deletes those that it has run, and passes the next one to the pool.
constexpr int kMaxInOneGo = 64;

using OperationBlocks = BlockCache<EngineOperation, sizeof(EngineOperation)>;

bool IsRun(Work work) { return work == Work::kCpuRun || work == Work::kDeviceRun; }

}  // namespace

// A variable in both lists is only written. The order is kept, so that it is certain which of several errors the operation
// inherits. The lists are freed here, by the thread that made them: to free memory of another thread is slow.
EngineOperation::EngineOperation(Operation& given)
    : run(std::move(given.run)), work(given.work), priority(given.priority), prioritized(given.prioritized) {
  const size_t most = given.reads.size() + given.writes.size();
  if (most > std::size(few_)) many_ = std::make_unique<Access[]>(most);
  Access* const first = many_ ? many_.get() : few_;
  Access* end = first;
  auto add = [&](Variable& variable, bool write) {
    if (std::any_of(first, end, [&](const Access& a) { return a.variable == variable; })) return;
    *end++ = {this, std::move(variable), write};
    writes += write;
  };
  for (Variable& v : given.reads) {
    if (std::find(given.writes.begin(), given.writes.end(), v) == given.writes.end()) add(v, false);
  }
  for (Variable& v : given.writes) add(v, true);
  accesses = {first, end};
  waits = static_cast<int>(accesses.size()) + 1;
}

void* EngineOperation::operator new(size_t) { return OperationBlocks::Allocate(); }
void EngineOperation::operator delete(void* block) { OperationBlocks::Free(block); }

PreparedOperation::PreparedOperation(Operation operation)
    : operation_(std::make_unique<EngineOperation>(operation)), device_(std::move(operation.device)) {}
PreparedOperation::PreparedOperation(PreparedOperation&&) noexcept = default;
PreparedOperation& PreparedOperation::operator=(PreparedOperation&&) noexcept = default;
PreparedOperation::~PreparedOperation() = default;

void OperationGroup::Begin(int64_t count) {
  left_.store(count, std::memory_order_relaxed);
  done_ = count == 0;
}

// The waiting thread may destroy the group as soon as it sees done_, so that is set under the mutex.
void OperationGroup::EndOne() {
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::lock_guard lock(mutex_);
  done_ = true;
  ended_.notify_all();
}

void OperationGroup::Wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return done_; });
}

// A pool with its key.
struct DependencyEngine::NamedPool {
  Work work;
  bool prioritized;
  std::string device;
  std::unique_ptr<WorkerPool> pool;
  NamedPool* next;
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
  void Prepare() {
    mutex_.lock();
    for (DependencyEngine* e : engines_) {
      e->fork_workers_ = e->options_.fork_workers ? e->options_.fork_workers() : e->cpu_workers_.load();
      std::unique_lock idle(e->finished_mutex_);
      e->forking_.store(true);
      if (running == Running::kNothing) e->finished_.wait(idle, [&] { return e->Idle(); });
      idle.release();
      e->pools_mutex_.lock();
    }
  }
  void Resume() {
    for (DependencyEngine* e : engines_) {
      e->pools_mutex_.unlock();
      e->forking_.store(false);
      e->finished_mutex_.unlock();
      e->finished_.notify_all();
    }
    mutex_.unlock();
  }
  // The child has none of the parent's threads. Leaks the pools: their mutexes may be locked, so they cannot be destroyed.
  // Replaces the condition variable, for which threads of the parent may wait.
  void StartAfresh() {
    for (DependencyEngine* e : engines_) {
      e->pools_.store(nullptr);
      e->cpu_workers_.store(e->fork_workers_);
      new (&e->finished_) std::condition_variable;
    }
    Resume();
  }

  std::mutex mutex_;
  std::vector<DependencyEngine*> engines_;
};

DependencyEngine::DependencyEngine(EngineOptions options)
    : options_(std::move(options)), cpu_workers_(options_.cpu_workers), no_memory_(std::make_shared<EngineFailure>()) {
  no_memory_->status = OutOfHostMemory();
  failures_.reserve(kMaxFailures + 1);
  Forks::Instance().Add(this);
}

DependencyEngine::~DependencyEngine() {
  Forks::Instance().Remove(this);
  {
    std::unique_lock lock(finished_mutex_);
    finished_.wait(lock, [this] { return Idle(); });
  }
  for (NamedPool* pool = pools_.load(); pool;) delete std::exchange(pool, pool->next);
}

Variable DependencyEngine::NewVariable() { return std::make_shared<EngineVariable>(); }

uint64_t DependencyEngine::Version(const Variable& variable) { return variable->version(); }

bool DependencyEngine::InOperation() { return running == Running::kOther; }
bool DependencyEngine::InRun() { return running == Running::kRun; }

void DependencyEngine::Push(Operation operation) {
  auto pushed = std::make_unique<EngineOperation>(operation);
  pushed->pool = PoolOf(pushed->work, pushed->prioritized, operation.device);
  Count();
  Ask(pushed.release());
}

void DependencyEngine::Push(PreparedOperation& operation, OperationGroup& group, int priority, bool prioritized) {
  EngineOperation& pushed = *operation.operation_;
  pushed.group = &group;
  pushed.priority = priority;
  pushed.prioritized = prioritized;
  pushed.waits.store(static_cast<int>(pushed.accesses.size()) + 1, std::memory_order_relaxed);
  for (EngineOperation::Access& access : pushed.accesses) access.next = nullptr;
  pushed.pool = PoolOf(pushed.work, prioritized, operation.device_);
  Count();
  Ask(&pushed);
}

void DependencyEngine::Count() {
  while (true) {
    pushed_.fetch_add(1);
    if (!forking_.load() || running != Running::kNothing) return;
    std::unique_lock lock(finished_mutex_);
    ended_.fetch_add(1);  // pushed_ only grows: Uncount() may have read it
    if (Idle()) finished_.notify_all();
    finished_.wait(lock, [this] { return !forking_.load(); });
  }
}

void DependencyEngine::Ask(EngineOperation* operation) noexcept {
  int granted = 1;
  for (EngineOperation::Access& access : operation->accesses) granted += access.variable->Append(access);
  // If some are missing, another thread may already have deleted the operation.
  if (operation->waits.fetch_sub(granted, std::memory_order_acq_rel) != granted) return;
  if (Add(operation->pool, operation)) return;
  ReadyList alone;
  alone.Add(operation);
  Execute(alone, nullptr);
}

int DependencyEngine::cpu_workers() const {
  switch (options_.kind) {
    case EngineKind::kNaive: return 1;
    case EngineKind::kThreaded: return options_.pool_workers;
    case EngineKind::kThreadedPerDevice: return std::max(cpu_workers_.load(), 1);
  }
  return 1;
}

bool DependencyEngine::Add(WorkerPool* pool, EngineOperation* operation) noexcept {
  if (!pool) return false;
  try {
    pool->Add(operation);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

WorkerPool* DependencyEngine::PoolOf(Work work, bool prioritized, std::string_view device) noexcept {
  if (options_.kind == EngineKind::kNaive) return nullptr;
  const bool per_device = options_.kind == EngineKind::kThreadedPerDevice;
  if (!per_device && work == Work::kDevice) work = Work::kCpu;
  if (!per_device && work == Work::kDeviceRun) work = Work::kCpuRun;
  prioritized = per_device && prioritized && (work == Work::kCpu || work == Work::kCpuRun);
  if (!per_device || prioritized) device = {};  // one pool for all devices
  auto find = [&]() -> WorkerPool* {
    for (NamedPool* at = pools_.load(std::memory_order_acquire); at; at = at->next) {
      if (at->work == work && at->prioritized == prioritized && at->device == device) return at->pool.get();
    }
    return nullptr;
  };
  if (WorkerPool* known = find()) return known;
  WorkerPool* pool = nullptr;
  (void)NoThrow([&] {
    std::lock_guard lock(pools_mutex_);
    pool = find();
    if (pool) return absl::OkStatus();
    int workers = 1;
    if (!per_device) {
      workers = work == Work::kCopy ? 1 : options_.pool_workers;
    } else if (prioritized) {
      workers = options_.priority_workers;
    } else {
      const bool gpu = work == Work::kDevice || work == Work::kDeviceRun;
      workers = work == Work::kCopy ? options_.gpu_copy_workers : gpu ? options_.gpu_workers : cpu_workers_.load();
    }
    const bool by_priority = prioritized || (per_device && work == Work::kCopy);
    auto made = std::make_unique<NamedPool>(NamedPool{work, prioritized, std::string(device), nullptr, pools_.load()});
    made->pool = std::make_unique<WorkerPool>(*this, std::max(workers, 1), by_priority);
    pool = made->pool.get();
    pools_.store(made.release(), std::memory_order_release);
    return absl::OkStatus();
  });
  return pool;
}

// Runs operations, then those that this thread continues with. A loop in place of recursion keeps the stack small for long
// chains.
void DependencyEngine::Execute(ReadyList here, WorkerPool* pool) noexcept {
  while (!here.empty()) {
    ReadyList done;
    int count = 0;
    for (bool end = false; !end && !here.empty();) {
      EngineOperation* next = here.Take();
      end = ++count == kMaxInOneGo || IsRun(next->work);  // what a run holds is released at once
      OperationGroup* const group = next->group;
      Run(*next, pool, here.empty() && !end, here);
      if (group) {
        group->EndOne();  // the operation may now be pushed again or destroyed
      } else {
        done.Add(next);
      }
    }
    Uncount(count);
    while (EngineOperation* next = done.Take()) delete next;  // last: may hold the last reference to the engine's owner
  }
}

void DependencyEngine::Run(EngineOperation& operation, WorkerPool* pool, bool continues, ReadyList& here) {
  std::shared_ptr<EngineFailure> failure;
  for (const EngineOperation::Access& access : operation.accesses) {
    if (operation.visits) break;
    if ((failure = access.variable->failure())) break;
  }
  if (!failure) {
    const Running outer = std::exchange(running, IsRun(operation.work) ? Running::kRun : Running::kOther);
    absl::Status status = NoThrow(operation.run);
    running = outer;
    if (!status.ok()) failure = NewFailure(std::move(status));
  }
  if (failure) List(failure, operation.writes);
  ReadyList released;
  // The written variables now own the error: a wait may return it before this function ends.
  if (operation.writes == 0) failure.reset();
  for (const EngineOperation::Access& access : operation.accesses) {
    const bool last = &access == &operation.accesses.back();
    access.variable->Release(access, last ? std::move(failure) : access.write ? failure : nullptr, released);
  }
  while (EngineOperation* next = released.Take()) {
    WorkerPool* const wanted = next->pool;
    if (wanted && wanted == pool && continues && wanted->Idle()) {
      continues = false;
      here.Add(next);
      continue;
    }
    if (!Add(wanted, next)) here.Add(next);
  }
}

// The engine may be destroyed when all operations have ended, so that becomes true under the mutex.
void DependencyEngine::Uncount(int64_t operations) {
  int64_t ended = ended_.load(std::memory_order_relaxed);
  while (pushed_.load() - ended > operations) {
    if (ended_.compare_exchange_weak(ended, ended + operations)) return;
  }
  std::lock_guard lock(finished_mutex_);
  ended_.fetch_add(operations);
  if (Idle()) finished_.notify_all();
}

std::shared_ptr<EngineFailure> DependencyEngine::NewFailure(absl::Status status) noexcept {
  try {
    auto failure = std::make_shared<EngineFailure>();
    failure->status = std::move(status);
    return failure;
  } catch (const std::bad_alloc&) {
    return no_memory_;
  }
}

void DependencyEngine::List(const std::shared_ptr<EngineFailure>& failure, int carriers) noexcept {
  std::lock_guard lock(finished_mutex_);
  failure->carriers.fetch_add(carriers, std::memory_order_relaxed);
  if (failure->listed) return;
  // Drops errors that no variable has any more, except the oldest one.
  if (failures_.size() >= kMaxFailures) {
    auto gone = [](const std::shared_ptr<EngineFailure>& other) {
      const bool drop = other->carriers.load(std::memory_order_relaxed) == 0;
      other->listed = !drop;
      return drop;
    };
    failures_.erase(std::remove_if(failures_.begin() + 1, failures_.end(), gone), failures_.end());
  }
  failure->listed = NoThrow([&] {
                      failures_.push_back(failure);
                      return absl::OkStatus();
                    }).ok();
}

void DependencyEngine::Visit(const Variable& variable, bool write, const std::function<void()>& visit) {
  std::mutex mutex;
  std::condition_variable done;
  bool reached = false;
  Operation operation = {.run = [&] {
    visit();
    std::lock_guard lock(mutex);
    reached = true;
    done.notify_all();
    return absl::OkStatus();
  }};
  (write ? operation.writes : operation.reads).push_back(variable);
  auto visitor = std::make_unique<EngineOperation>(operation);
  visitor->visits = true;
  Count();
  Ask(visitor.release());
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return reached; });
}

absl::Status DependencyEngine::WaitForVariable(const Variable& variable) {
  std::shared_ptr<EngineFailure> failure;
  Visit(variable, /*write=*/false, [&] { failure = variable->failure(); });
  if (!failure) return absl::OkStatus();
  // Operations that were pushed before this call must still see the error, so clearing it is a write.
  Visit(variable, /*write=*/true, [&] { failure = variable->TakeFailure(); });
  if (!failure) return absl::OkStatus();  // another thread has returned it
  std::lock_guard guard(finished_mutex_);
  failure->returned = true;
  // If another variable has the same error, WaitForAll() must still return it.
  if (failure->Over() && std::exchange(failure->listed, false)) std::erase(failures_, failure);
  return failure->status;
}

absl::Status DependencyEngine::WaitForAll() {
  std::unique_lock lock(finished_mutex_);
  finished_.wait(lock, [this] { return Idle(); });
  absl::Status first;
  for (const std::shared_ptr<EngineFailure>& failure : failures_) {
    if (first.ok() && !failure->Over()) first = failure->status;
    failure->listed = false;
  }
  failures_.clear();
  return first;
}

}  // namespace mge
