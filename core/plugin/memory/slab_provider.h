// SPDX-License-Identifier: Apache-2.0
// Slab providers: where pools get their memory. The only way to a backend's driver calls, and the place where the budget binds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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
  // Whether the fence has reached its value, or failed; true without a fence. `wait` blocks until it has.
  virtual bool Reached(const mge_fence_point& point, bool wait) const = 0;
};

// Slabs of one memory class of an open device. The device outlives it.
class DeviceSlabs : public SlabProvider {
 public:
  // `queue` is nullptr on a device without queues. `name` is the device's, for messages.
  DeviceSlabs(std::string name, mge_device* device, const mge_memory_api* memory, const mge_queue_api* queue,
              int32_t memory_class, std::shared_ptr<Budget> budget);
  absl::StatusOr<mge_slab> Acquire(uint64_t bytes) override;
  void Release(const mge_slab& slab) override;
  MemoryInfo Info() const override;
  bool Reached(const mge_fence_point& point, bool wait) const override;

  // The same as a C table, for a pool of the backend's own; lives as long as this object.
  const mge_slab_provider* table() const { return &table_; }

 private:
  std::string name_;
  mge_device* device_;
  const mge_memory_api* memory_;
  const mge_queue_api* queue_;
  int32_t memory_class_;
  std::shared_ptr<Budget> budget_;
  mge_slab_provider table_;
};

}  // namespace mge
