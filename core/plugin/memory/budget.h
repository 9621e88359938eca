// SPDX-License-Identifier: Apache-2.0
// Budget: the hard limit of the memory that MGE uses on one device, and the allocator of host tensors that is charged to it.
//
// Why: several pools and plans share one device. Memory that one of them keeps for later must not make a request of another
// fail.
//
// Algorithm: each holder of memory charges its bytes before it acquires them. If a request fails for lack of memory, Press()
// asks the other registered keepers to give back idle memory. It retries with moderate and then with critical pressure.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "mge/plugin.h"

namespace mge {

// A counter of the bytes acquired from a device, with a list of keepers that can give memory back. Thread-safe. Counting is
// lock-free.
class Budget {
 public:
  // `limit` is in bytes; 0: no limit. `owner` is the device's name, for messages.
  explicit Budget(std::string owner, uint64_t limit = 0) : owner_(std::move(owner)), limit_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Charges bytes. If the limit would be exceeded, charges nothing and fails with kOverBudget.
  absl::Status Charge(uint64_t bytes);
  void Refund(uint64_t bytes) { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::string& owner() const { return owner_; }
  uint64_t limit() const { return limit_; }
  uint64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void ResetPeak() { peak_.store(in_use(), std::memory_order_relaxed); }
  // Returns the bytes that can still be charged; UINT64_MAX without a limit.
  uint64_t left() const;

  // The callbacks of an object that keeps charged memory for later. They are called on any thread, while no lock of a pool
  // is held. They must not call Join() or Leave().
  struct Keeper {
    std::function<uint64_t(uint32_t pressure)> give_back;  // gets a MGE_PRESSURE_ level; returns the bytes given back
    std::function<uint64_t()> idle;                        // returns the bytes that could be given back
  };
  // Registers the keeper `who`. The keeper registered last is asked first. A keeper that holds reservations of a pool must
  // register after that pool. The pool is then asked later, and can give back what the keeper released.
  void Join(const void* who, Keeper keeper);
  // Removes the keeper `who`. Waits for a callback of it that is running.
  void Leave(const void* who);
  uint64_t idle() const;  // the idle bytes of all keepers
  // Retries a failed request. `taken` is the result of take(). If it says that `bytes` bytes could not be acquired, asks all
  // keepers except `who` to give memory back. If they give back any, calls take() again and stores its result in `taken`.
  template <typename T, typename F>
  void Press(const void* who, uint64_t bytes, absl::StatusOr<T>& taken, F&& take) {
    for (uint32_t pressure : {MGE_PRESSURE_MODERATE, MGE_PRESSURE_CRITICAL}) {
      if (taken.ok() || !CanHelp(taken.status(), bytes)) break;
      if (AskBack(who, pressure) > 0) taken = take();
    }
  }

 private:
  bool CanHelp(const absl::Status& refusal, uint64_t bytes) const;
  uint64_t AskBack(const void* but, uint32_t pressure);
  // Locks the mutex. In a forked child the mutex may have been held by a thread that does not exist there. Then gives up
  // after kPatience and returns a lock that owns nothing.
  std::unique_lock<std::mutex> Lock() const;

  const std::string owner_;
  const uint64_t limit_;
  std::atomic<uint64_t> in_use_{0};
  std::atomic<uint64_t> peak_{0};
  const pid_t process_ = getpid();
  mutable std::mutex mutex_;
  mutable std::atomic<bool> lost_{false};  // whether the mutex can never be locked again after a fork
  std::vector<std::pair<const void*, Keeper>> keepers_;
};

// Returns whether a status is kOverBudget or kOverCap: a budget or the cap of a reserve policy was the limit.
bool IsOverBudget(const absl::Status& status);

// The largest request of a pool in bytes. It is larger than any device, and sums with it do not overflow.
inline constexpr uint64_t kLargestRequest = uint64_t{1} << 62;

// An allocator of host tensors that charges a budget. A tensor is charged until its last view is destroyed, which may be
// after the allocator is destroyed. Thread-safe. Fails with kOverBudget or kOutOfMemory.
class BudgetedHostAllocator : public HostAllocator {
 public:
  explicit BudgetedHostAllocator(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override;

 private:
  absl::StatusOr<std::shared_ptr<std::byte>> Take(int64_t bytes);
  std::shared_ptr<Budget> budget_;
};

}  // namespace mge
