// SPDX-License-Identifier: Apache-2.0
// Budget: the hard limit of the memory that MGE takes on one device, and the allocator of host tensors that charges it.
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

// Counts bytes taken from a device, and knows who could give some back. Safe on any thread; counting takes no lock.
class Budget {
 public:
  // `limit` 0: none. `owner` is the device's name, for messages.
  explicit Budget(std::string owner, uint64_t limit = 0) : owner_(std::move(owner)), limit_(limit) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // kOverBudget, naming device, bytes asked for, in use and limit; nothing is charged then.
  absl::Status Charge(uint64_t bytes);
  void Refund(uint64_t bytes) { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::string& owner() const { return owner_; }
  uint64_t limit() const { return limit_; }
  uint64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void ResetPeak() { peak_.store(in_use(), std::memory_order_relaxed); }
  // Bytes that may still be charged; UINT64_MAX without a limit.
  uint64_t left() const;

  // Somebody who keeps memory for later that is charged here. Called from any thread, but under no lock of a pool; it may
  // neither join nor leave meanwhile.
  struct Keeper {
    std::function<uint64_t(uint32_t pressure)> give_back;  // for a MGE_PRESSURE_ level; answers the bytes that came back
    std::function<uint64_t()> idle;                        // bytes that it could give back
  };
  // Who joined last is asked first: who keeps reservations of a pool joins after it, so that it can give on what comes back.
  void Join(const void* who, Keeper keeper);
  void Leave(const void* who);  // returns when no call of it is under way
  uint64_t idle() const;        // of all keepers
  // `taken` is the StatusOr that take() has answered. Where it says that memory ran out for `bytes`, everybody but `who` is
  // asked to give back, and if somebody does, take() is called again.
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
  // In a process forked from the one that made the budget, a lock that was held then is never free: it is not waited for
  // longer than others would hold it.
  std::unique_lock<std::mutex> Lock() const;

  const std::string owner_;
  const uint64_t limit_;
  std::atomic<uint64_t> in_use_{0};
  std::atomic<uint64_t> peak_{0};
  const pid_t process_ = getpid();
  mutable std::mutex mutex_;
  mutable std::atomic<bool> lost_{false};  // the mutex, by the fork
  std::vector<std::pair<const void*, Keeper>> keepers_;
};

// Whether it says that a limit was in the way: of the budget, or of a pool.
bool IsOverBudget(const absl::Status& status);

// Requests above this are refused by every pool: no device has as much, and sums with it stay in range.
inline constexpr uint64_t kLargestRequest = uint64_t{1} << 62;

// Host tensors whose bytes count against a budget until the last view of them is gone, which may be after the allocator
// itself is.
class BudgetedHostAllocator : public HostAllocator {
 public:
  explicit BudgetedHostAllocator(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override;

 private:
  absl::StatusOr<std::shared_ptr<std::byte>> Take(int64_t bytes);
  std::shared_ptr<Budget> budget_;
};

}  // namespace mge
