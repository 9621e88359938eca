// SPDX-License-Identifier: Apache-2.0
// Device: one device of one backend, opened at first use, with its tables, budget and pools.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/plugin/loader.h"
#include "core/plugin/memory/budget.h"
#include "core/plugin/memory/pool.h"
#include "core/plugin/memory/slab_provider.h"
#include "core/plugin/unfinished.h"
#include "mge/plugin.h"

namespace mge {

// The user's memory settings for a device. If a text is empty, the backend chooses.
struct MemoryOptions {
  std::string pool = {};     // "naive", ...
  std::string reserve = {};  // "percent:5", ...
  // The pool must cut blocks out of a large slab, because the reserve is one. Replaces a ready-made pool that the backend
  // names, but not its own pool.
  bool needs_cuts = false;
  int keep_free_percent = 0;  // share of the device's memory that stays free, whatever the reserve policy says; 0..100
  PoolOptions numbers = {};
};

// The memory of a device at one moment, in bytes.
struct MemoryStats {
  MemoryInfo device;     // as the driver reports it
  uint64_t limit = 0;    // 0: no limit
  uint64_t charged = 0;  // bytes held from the driver, including host tensors of a host-accessible device
  uint64_t peak_charged = 0;
  mge_pool_stats pool = {};  // statistics of the pool of class DEVICE; zero before its first use
};

// The parts that work for a device: "own" for those of its backend, else the host's by name.
struct DeviceParts {
  std::string pool;      // "growing"
  std::string reserve;   // "percent:5"
  std::string strategy;  // "heuristic", "own (profile)": the order, in the mode that holds unless select.strategy names one
};

// One device of one backend. Thread-safe. Owned by Devices, which must outlive every use.
class Device : public std::enable_shared_from_this<Device> {
 public:
  Device(std::shared_ptr<Backend> backend, DeviceDescription description, MemoryOptions memory);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // ---- identity: constant, except for gpu_name(), which is set when all backends that list GPUs have been started
  const std::string& name() const { return name_; }  // "cuda0"
  const std::string& gpu_name() const;               // "gpu0" if it is numbered as a GPU, else empty
  const std::string& class_name() const { return description_.class_name; }
  int number() const { return number_; }
  const DeviceDescription& description() const { return description_; }
  const Backend& backend() const { return *backend_; }
  bool Is(uint32_t flag) const { return (description_.flags & flag) != 0; }  // MGE_DEVICE_...
  // Returns whether the device can be requested. If not, reason() says why. Opening a usable device may still fail.
  bool usable() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }

  // ---- use
  // Opens the device unless it is open. Fails with kDeviceUnusable, kDeviceLost, kOutOfMemory, or kForked (in a forked child
  // process if the device does not survive a fork).
  absl::Status Open();
  mge_device* handle() const { return handle_.load(std::memory_order_acquire); }  // nullptr before Open()
  // Returns kDeviceLost after the backend has reported the device as lost. Returns OK before Open().
  absl::Status Health() const;
  // Returns whether the handles of this device belong to the parent of a forked process. They must not be used or freed
  // here.
  bool Orphaned() const;

  const mge_kernel_api& kernel_api() const { return *backend_->plugin().kernel; }
  const mge_memory_api& memory_api() const { return *backend_->plugin().memory; }
  const mge_queue_api* queue_api() const { return backend_->plugin().queue; }           // nullable
  const mge_graph_api* graph_api() const { return backend_->plugin().graph; }           // nullable
  const mge_strategy_api* strategy_api() const { return backend_->plugin().strategy; }  // nullable
  const mge_layout_api* layout_api() const { return backend_->plugin().layout; }        // nullable
  const mge_profile_api* profile_api() const { return backend_->plugin().profile; }     // nullable
  const mge_host* host() const { return backend_->host(); }                             // the value for mge_run.host

  // Returns a device that is not open, with the identity and the budgets of this one.
  std::shared_ptr<Device> Successor() const;

  // Takes ownership of unfinished work and keeps it until the work is over. Finished work is freed at the next Keep(),
  // Reserve() or TrimIdle().
  void Keep(std::unique_ptr<Unfinished> work);
  // Marks the device as one whose work never ends. Its destructor then leaks the device, its memory and its started backend
  // on purpose. Closing would wait, or would free memory that the device still writes. Cannot be undone.
  void Abandon() { abandoned_.store(true, std::memory_order_relaxed); }

  // ---- memory
  // Returns the largest size of one slab of class DEVICE in bytes. UINT64_MAX: no limit but the memory itself.
  uint64_t LargestAllocation() const { return description_.max_allocation ? description_.max_allocation : UINT64_MAX; }
  // Returns the alignment of every operand, workspace and constant on this device: a power of two, 64 to 4096 bytes.
  uint64_t BufferAlignment() const { return description_.buffer_alignment; }
  Budget& budget(int32_t memory_class = MGE_MEMORY_DEVICE) { return *BudgetOf(memory_class); }
  // Returns the pool of a memory class. Creates it, and opens the device, at the first use. The pool lives as long as the
  // device.
  absl::StatusOr<Pool*> PoolOf(int32_t memory_class = MGE_MEMORY_DEVICE);
  // Applies the reserve policy to a plan. The pool gets the limits `keep_free` and `retain`, and acquires up to `initial`
  // bytes at once. Called before a plan's first run. Fails with kOutOfMemory or kOverBudget.
  absl::Status Reserve(const mge_plan_summary& plan);
  // Returns the allocator of host tensors for work on this device. If the host can access the device's memory, they are
  // charged to the device's budget, else to the budget of the host device.
  HostAllocator& host_allocator() { return *host_allocator_; }
  absl::StatusOr<MemoryInfo> QueryMemory();  // opens the device
  MemoryStats Stats();
  DeviceParts Parts() const;  // of memory class DEVICE; opens nothing
  // Returns the bytes of the device's budget that are in use. Memory that pools and plans keep for later is not counted.
  uint64_t LiveBytes() const;
  void Trim(int32_t how);  // trims all pools: MGE_TRIM_EXCESS or MGE_TRIM_ALL
  // Trims each pool of which nothing is in use to the policy's `retain` bytes, and frees kept work that is over.
  void TrimIdle();

 private:
  friend class Devices;
  // The pool of one memory class, with the policy's last decision and the plan that it was made for.
  struct ClassMemory {
    std::unique_ptr<DeviceSlabs> slabs;
    std::unique_ptr<Pool> pool;
    std::mutex mutex;  // guards the members below; must not be held while a lock of the device or a budget is acquired
    mge_plan_summary plan = {};
    mge_reserve_decision decision = {};
    uint64_t cap = 0;  // the largest `cap` of all decisions for plans
  };
  absl::Status OpenLocked();
  absl::StatusOr<Pool*> PoolLocked(int32_t memory_class);
  absl::StatusOr<std::unique_ptr<Pool>> NewPool(int32_t memory_class, DeviceSlabs* slabs) const;
  absl::StatusOr<mge_reserve_decision> Decide(const mge_plan_summary& plan) const;
  const std::shared_ptr<Budget>& BudgetOf(int32_t memory_class) const {
    return memory_class == MGE_MEMORY_DEVICE ? budget_ : host_budget_;
  }
  int32_t ClassOf(const ClassMemory& memory) const { return static_cast<int32_t>(&memory - classes_.data()); }
  // Asks the policy about a plan and passes its decision to the pool.
  absl::StatusOr<mge_reserve_decision> Follow(ClassMemory& memory, mge_plan_summary plan);
  absl::StatusOr<mge_reserve_decision> Ask(const ClassMemory& memory, mge_plan_summary plan) const;
  uint64_t GiveBack(ClassMemory& memory, uint32_t pressure) noexcept;

  std::shared_ptr<Backend> backend_;
  DeviceDescription description_;
  MemoryOptions memory_options_;
  std::string name_, gpu_name_, reason_;
  std::atomic<bool> gpu_named_{false};  // gpu_name_ is set and constant
  int number_ = 0;
  std::shared_ptr<Budget> budget_;       // shared: host tensors may outlive the device
  std::shared_ptr<Budget> host_budget_;  // the budget of pinned memory
  std::unique_ptr<HostAllocator> host_allocator_;

  mutable std::mutex mutex_;
  std::atomic<mge_device*> handle_{nullptr};
  std::array<ClassMemory, MGE_MEMORY_CLASS_COUNT> classes_;
  UnfinishedList unfinished_;
  std::atomic<bool> abandoned_{false};
};

// Checks that page-locked memory of the device has a host address. Fails with kKernelFailed if it has none.
absl::Status CheckHostReaches(const Device& device, const mge_reservation& memory);

}  // namespace mge
