// SPDX-License-Identifier: Apache-2.0
// Slab providers: where pools get their memory. The only way to a backend's driver calls, and the place where the budget binds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/plugin/memory/budget.h"
#include "mge/plugin.h"

namespace mge {

struct MemoryInfo {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;  // 0: unknown
};

// Safe on any thread.
class SlabProvider {
 public:
  virtual ~SlabProvider() = default;
  // kOverBudget or kOutOfMemory. The address is 64-byte aligned at least; `bytes` > 0.
  virtual absl::StatusOr<mge_slab> Acquire(uint64_t bytes) = 0;
  virtual void Release(const mge_slab& slab) = 0;
  // Of the device, never more than what the budget leaves.
  virtual MemoryInfo Info() const = 0;
  virtual bool Limited() const { return false; }  // whether a budget binds
  virtual uint64_t Largest() const { return UINT64_MAX; }  // most bytes that one Acquire can give
  // Whether the fence has reached its value, or failed; true without a fence. `wait` blocks until it has.
  virtual bool Reached(const mge_fence_point& point, bool wait) const = 0;

  // Gives a slab back that is read until `last_use`, without waiting. False, and nothing happens, where the device cannot.
  virtual bool ReleaseAfter(const mge_slab& slab, const mge_fence_point& last_use);

  // Virtual memory: a range of addresses, and memory under the parts of it that are committed. 0: there is none.
  virtual uint64_t RangeGranularity() const { return 0; }
  virtual absl::StatusOr<mge_slab> ReserveRange(uint64_t bytes);
  virtual void ReleaseRange(const mge_slab& range);  // nothing of it is committed any more
  virtual absl::Status Commit(const mge_slab& range, uint64_t offset, uint64_t bytes);  // errors as Acquire
  virtual void Decommit(const mge_slab& range, uint64_t offset, uint64_t bytes);
};

// Slabs of one memory class of an open device. The device outlives it.
class DeviceSlabs : public SlabProvider {
 public:
  // `queue` is nullptr on a device without queues. `name` is the device's, for messages. `largest`: bytes of one slab.
  DeviceSlabs(std::string name, mge_device* device, const mge_memory_api* memory, const mge_queue_api* queue,
              int32_t memory_class, std::shared_ptr<Budget> budget, uint64_t largest = UINT64_MAX);
  ~DeviceSlabs() override;
  absl::StatusOr<mge_slab> Acquire(uint64_t bytes) override;
  void Release(const mge_slab& slab) override;
  MemoryInfo Info() const override;
  bool Limited() const override { return budget_->limit() != 0; }
  uint64_t Largest() const override { return largest_; }
  bool Reached(const mge_fence_point& point, bool wait) const override;
  bool ReleaseAfter(const mge_slab& slab, const mge_fence_point& last_use) override;
  uint64_t RangeGranularity() const override;
  absl::StatusOr<mge_slab> ReserveRange(uint64_t bytes) override;
  void ReleaseRange(const mge_slab& range) override;
  absl::Status Commit(const mge_slab& range, uint64_t offset, uint64_t bytes) override;
  void Decommit(const mge_slab& range, uint64_t offset, uint64_t bytes) override;

  // Bytes that may be held at a time, beside what the budget allows; 0: any number.
  void SetCap(uint64_t bytes) { cap_.store(bytes, std::memory_order_relaxed); }
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  // Refunds the slabs that have left; `wait`: at least one. False if none did.
  bool Settle(bool wait);

  // The same as a C table, for a pool of the backend's own; lives as long as this object.
  const mge_slab_provider* table() const { return &table_; }
  // The object behind such a table; nullptr if the table is somebody else's.
  static DeviceSlabs* Behind(const mge_slab_provider* table);

 private:
  // Slabs whose release the driver has queued: their memory is the device's again when the fence is reached.
  struct Leaving {
    uint64_t bytes;
    mge_fence_point last_use;
  };
  absl::Status ChargeOnce(uint64_t bytes);
  absl::Status Charge(uint64_t bytes);  // waits for what is leaving
  void Refund(uint64_t bytes);
  absl::Status Refused(mge_code code, const mge_error& error, uint64_t bytes) const;

  std::string name_;
  mge_device* device_;
  const mge_memory_api* memory_;
  const mge_queue_api* queue_;
  int32_t memory_class_;
  std::shared_ptr<Budget> budget_;
  const uint64_t largest_;
  std::atomic<uint64_t> cap_{0}, held_{0};
  mge_slab_provider table_;
  std::mutex mutex_;
  std::vector<Leaving> leaving_;
};

}  // namespace mge
