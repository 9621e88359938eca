// SPDX-License-Identifier: Apache-2.0
// Budget: the hard limit of the memory that MGE takes on one device, and the allocator of host tensors that charges it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/status.h"
#include "core/base/tensor.h"

namespace mge {

// Counts bytes taken from a device. Safe on any thread, without locks.
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

 private:
  const std::string owner_;
  const uint64_t limit_;
  std::atomic<uint64_t> in_use_{0};
  std::atomic<uint64_t> peak_{0};
};

// Host tensors whose bytes count against a budget until the last view of them is gone, which may be after the allocator
// itself is.
class BudgetedHostAllocator : public HostAllocator {
 public:
  explicit BudgetedHostAllocator(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override;

 private:
  std::shared_ptr<Budget> budget_;
};

}  // namespace mge
