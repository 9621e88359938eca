// SPDX-License-Identifier: Apache-2.0
// The operations and variables of the dependency engine (dependency_engine.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "core/engine/dependency_engine.h"
#include "core/engine/spin_lock.h"

namespace mge {

// An error of an operation. Operations that inherit the error share the object.
struct EngineFailure {
  absl::Status status;
  std::atomic<int> carriers{0};  // number of variables that have the error, or are about to get it
  bool listed = false;           // in the list of WaitForAll(); guarded by the engine's mutex
  bool returned = false;         // a wait for a variable has returned it; guarded by the engine's mutex
  // Returns whether nothing is left to report.
  bool Over() const { return returned && carriers.load(std::memory_order_relaxed) == 0; }
};

// An operation that has been pushed. It runs when all its accesses are granted. Everything that it needs is allocated here,
// so that later steps cannot fail for lack of memory.
struct EngineOperation {
  // An entry in the queue of a variable.
  struct Access {
    EngineOperation* operation = nullptr;
    Variable variable = nullptr;
    bool write = false;
    Access* next = nullptr;
  };

  explicit EngineOperation(Operation& given);  // moves all but `device`
  // One thread makes operations and another one deletes them. With malloc() they contend for a lock, so blocks are kept for later
  // operations (block_cache.h).
  static void* operator new(size_t bytes);
  static void operator delete(void* block);

  std::function<absl::Status()> run;
  WorkerPool* pool = nullptr;  // nullptr: the thread that grants the last access runs it
  Work work;
  int priority;
  bool prioritized;
  bool visits =
      false;  // of WaitForVariable(). Runs in the thread that releases the last access, inherits no error, is no write
  std::atomic<int> waits;           // number of missing grants, plus one while they are requested
  int writes = 0;                   // number of accesses that write; they come last
  std::span<Access> accesses;       // each variable once
  OperationGroup* group = nullptr;  // of a prepared operation
  EngineOperation* next = nullptr;  // next in a ReadyList or in the queue of a pool

 private:
  Access few_[3];
  std::unique_ptr<Access[]> many_;
};

// A queue of operations, linked through EngineOperation::next, so that it allocates nothing.
class ReadyList {
 public:
  void Add(EngineOperation* operation) {
    operation->next = nullptr;
    (first_ ? last_->next : first_) = operation;
    last_ = operation;
  }
  EngineOperation* Take() { return first_ ? std::exchange(first_, first_->next) : nullptr; }
  bool empty() const { return !first_; }

 private:
  EngineOperation *first_ = nullptr, *last_ = nullptr;
};

// A variable: a queue of accesses in the order of the pushes. Reads at its front are granted together, a write is granted
// alone.
class EngineVariable {
 public:
  using Access = EngineOperation::Access;
  using Failure = std::shared_ptr<EngineFailure>;

  EngineVariable() = default;
  EngineVariable(const EngineVariable&) = delete;
  EngineVariable& operator=(const EngineVariable&) = delete;
  ~EngineVariable() { SetFailure(nullptr); }

  // Requests access. Returns true if it is granted at once.
  bool Append(Access& access) {
    std::lock_guard lock(lock_);
    if (!first_ && !writing_ && (!access.write || readers_ == 0)) {
      Grant(access.write);
      return true;
    }
    (first_ ? last_->next : first_) = &access;
    last_ = &access;
    return false;
  }

  // Releases access. Adds the operations that become ready to `ready`. `failure` is that of the operation, or nullptr.
  void Release(const Access& access, Failure failure, ReadyList& ready) {
    std::lock_guard lock(lock_);
    if (access.write) {
      writing_ = false;
      if (!access.operation->visits) ++version_;
      if (failure || failed_.load(std::memory_order_relaxed)) SetFailure(std::move(failure));
    } else {
      --readers_;
    }
    while (first_ && !writing_ && (!first_->write || readers_ == 0)) {
      EngineOperation* operation = first_->operation;
      Grant(first_->write);
      first_ = first_->next;  // before the grant is counted: the operation may then end
      if (operation->waits.fetch_sub(1, std::memory_order_acq_rel) == 1) ready.Add(operation);
    }
  }

  // Returns the error, or nullptr. May be called by an operation that accesses the variable.
  Failure failure() {
    if (!failed_.load(std::memory_order_acquire)) return nullptr;
    std::lock_guard lock(lock_);
    return failure_;
  }
  // Returns the error, or nullptr, and clears it.
  Failure TakeFailure() {
    std::lock_guard lock(lock_);
    Failure taken = failure_;
    SetFailure(nullptr);
    return taken;
  }
  uint64_t version() {
    std::lock_guard lock(lock_);
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
  // The caller has counted this variable as a carrier of `failure`.
  void SetFailure(Failure failure) {
    if (failure_) failure_->carriers.fetch_sub(1, std::memory_order_relaxed);
    failure_ = std::move(failure);
    failed_.store(failure_ != nullptr, std::memory_order_release);
  }

  Access *first_ = nullptr, *last_ = nullptr;  // accesses that are not granted
  int readers_ = 0;
  SpinLock lock_;
  bool writing_ = false;
  std::atomic<bool> failed_{false};  // failure_ is set
  uint64_t version_ = 0;
  Failure failure_;
};

}  // namespace mge
