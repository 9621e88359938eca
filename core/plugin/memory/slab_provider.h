// SPDX-License-Identifier: Apache-2.0
// Slab providers: the source of a pool's memory. All driver calls for memory go through a provider, which enforces the
// budget.
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

inline constexpr uint64_t kMinSlabAlignment = 64;  // bytes

struct MemoryInfo {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;  // 0: unknown
};

// A source of slabs. Thread-safe.
class SlabProvider {
 public:
  virtual ~SlabProvider() = default;
  // Acquires a slab. `bytes` must be above 0. The address is a multiple of Alignment(). Fails with kOverBudget or
  // kOutOfMemory.
  virtual absl::StatusOr<mge_slab> Acquire(uint64_t bytes) = 0;
  virtual uint64_t Alignment() const { return kMinSlabAlignment; }  // of every slab: a power of two
  virtual void Release(const mge_slab& slab) = 0;
  // Returns the free and total bytes of the device, limited by the budget.
  virtual MemoryInfo Info() const = 0;
  virtual bool Limited() const { return false; }           // whether the budget has a limit
  virtual uint64_t Largest() const { return UINT64_MAX; }  // the largest slab in bytes
  // Returns whether the fence has reached its value or has failed; true if there is no fence. `wait` waits until it has.
  virtual bool Reached(const mge_fence_point& point, bool wait) const = 0;

  // Releases a slab that is in use until `last_use`, without waiting. If the device does not support this, does nothing and
  // returns false.
  virtual bool ReleaseAfter(const mge_slab& slab, const mge_fence_point& last_use);

  // Virtual memory: a range of addresses, in which parts can be committed (get memory). RangeGranularity() is the unit of
  // offsets and sizes in bytes; 0: the device has no virtual memory.
  virtual uint64_t RangeGranularity() const { return 0; }
  virtual absl::StatusOr<mge_slab> ReserveRange(uint64_t bytes);
  virtual void ReleaseRange(const mge_slab& range);                                     // all of it must be decommitted
  virtual absl::Status Commit(const mge_slab& range, uint64_t offset, uint64_t bytes);  // fails like Acquire()
  virtual void Decommit(const mge_slab& range, uint64_t offset, uint64_t bytes);
};

// The provider of one memory class of an open device. The device must outlive it.
class DeviceSlabs : public SlabProvider {
 public:
  // `queue` is nullptr for a device without queues. `name` is the device's name, for messages. `largest` is the largest slab
  // in bytes, `alignment` what the backend promises of each slab's address.
  DeviceSlabs(std::string name, mge_device* device, const mge_memory_api* memory, const mge_queue_api* queue,
              int32_t memory_class, std::shared_ptr<Budget> budget, uint64_t largest = UINT64_MAX,
              uint64_t alignment = kMinSlabAlignment);
  ~DeviceSlabs() override;
  absl::StatusOr<mge_slab> Acquire(uint64_t bytes) override;
  void Release(const mge_slab& slab) override;
  MemoryInfo Info() const override;
  bool Limited() const override { return budget_->limit() != 0; }
  uint64_t Largest() const override { return largest_; }
  uint64_t Alignment() const override { return alignment_; }
  bool Reached(const mge_fence_point& point, bool wait) const override;
  bool ReleaseAfter(const mge_slab& slab, const mge_fence_point& last_use) override;
  uint64_t RangeGranularity() const override;
  absl::StatusOr<mge_slab> ReserveRange(uint64_t bytes) override;
  void ReleaseRange(const mge_slab& range) override;
  absl::Status Commit(const mge_slab& range, uint64_t offset, uint64_t bytes) override;
  void Decommit(const mge_slab& range, uint64_t offset, uint64_t bytes) override;

  // Sets the cap of the reserve policy: the largest number of bytes held at a time, in addition to the budget. 0: no cap.
  void SetCap(uint64_t bytes) { cap_.store(bytes, std::memory_order_relaxed); }
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  // Refunds the slabs of ReleaseAfter() whose last use is over. `wait` waits for one of them. Returns whether any was
  // refunded.
  bool Settle(bool wait);

  // This provider as a C table, for a backend's own pool. Valid for the lifetime of this object.
  const mge_slab_provider* table() const { return &table_; }
  // Returns the object of a table made by table(), or nullptr for any other table.
  static DeviceSlabs* Behind(const mge_slab_provider* table);

 private:
  // A slab whose release the driver has queued. Its memory is free when the fence is reached.
  struct Leaving {
    uint64_t bytes;
    mge_fence_point last_use;
  };
  absl::Status ChargeOnce(uint64_t bytes);
  absl::Status Charge(uint64_t bytes);  // charges budget and cap; if they are full, waits for queued releases
  void Refund(uint64_t bytes);
  absl::Status Refused(mge_code code, const mge_error& error, uint64_t bytes) const;

  std::string name_;
  mge_device* device_;
  const mge_memory_api* memory_;
  const mge_queue_api* queue_;
  int32_t memory_class_;
  std::shared_ptr<Budget> budget_;
  const uint64_t largest_, alignment_;
  std::atomic<uint64_t> cap_{0}, held_{0};
  mge_slab_provider table_;
  std::mutex mutex_;
  std::vector<Leaving> leaving_;
};

}  // namespace mge
