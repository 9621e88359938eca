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

// What the user set about memory; empty texts leave the choice to the backend.
struct MemoryOptions {
  std::string pool = {};     // "naive", ...
  std::string reserve = {};  // "percent:5", ...
  PoolOptions numbers = {};
};

// What a device holds at one moment.
struct MemoryStats {
  MemoryInfo device;           // what the driver says
  uint64_t limit = 0;          // 0: none
  uint64_t charged = 0;        // bytes held from the driver, host tensors of a host-accessible device included
  uint64_t peak_charged = 0;
  mge_pool_stats pool = {};    // of the default memory class; zero before its first use
};

// Safe on any thread. Borrowed from Devices, which outlives every use.
class Device {
 public:
  Device(std::shared_ptr<Backend> backend, DeviceDescription description, MemoryOptions memory);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // ---- identity; constant
  const std::string& name() const { return name_; }        // "cuda0"
  const std::string& gpu_name() const { return gpu_name_; }  // "gpu0" if it answers to that, else empty
  const std::string& class_name() const { return description_.class_name; }
  int number() const { return number_; }
  const DeviceDescription& description() const { return description_; }
  const Backend& backend() const { return *backend_; }
  bool Is(uint32_t flag) const { return (description_.flags & flag) != 0; }  // MGE_DEVICE_...
  // Whether it can be asked for, and why not. Opening may still fail.
  bool usable() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }

  // ---- use
  // Opens it unless it is open. kDeviceUnusable, kForked in a child process where it does not survive, kDeviceLost.
  absl::Status Open();
  mge_device* handle() const { return handle_.load(std::memory_order_acquire); }  // nullptr before Open()
  // kDeviceLost once the backend says so; OK before Open().
  absl::Status Health() const;
  // Whether its handles are those of a parent process, which do not work here: nothing of them may be touched.
  bool Orphaned() const;

  const mge_kernel_api& kernel_api() const { return *backend_->plugin().kernel; }
  const mge_memory_api& memory_api() const { return *backend_->plugin().memory; }
  const mge_queue_api* queue_api() const { return backend_->plugin().queue; }           // nullable
  const mge_graph_api* graph_api() const { return backend_->plugin().graph; }           // nullable
  const mge_strategy_api* strategy_api() const { return backend_->plugin().strategy; }  // nullable
  const mge_layout_api* layout_api() const { return backend_->plugin().layout; }        // nullable
  const mge_profile_api* profile_api() const { return backend_->plugin().profile; }     // nullable
  const mge_host* host() const { return backend_->host(); }  // what goes into mge_run.host

  // Keeps aside what the device may still touch, until it is over: looked at whenever more is kept, for every plan, and when
  // a session ends.
  void Keep(std::unique_ptr<Unfinished> work);
  // Something that it or another device of the same plan was given never ends: from now on it is not closed when all else is,
  // its backend not stopped, and what it holds is lost. Not taken back.
  void Abandon() { abandoned_.store(true, std::memory_order_relaxed); }

  // ---- memory
  // Most bytes that one slab of class DEVICE has; UINT64_MAX: no limit but the memory itself.
  uint64_t LargestAllocation() const { return description_.max_allocation ? description_.max_allocation : UINT64_MAX; }
  Budget& budget(int32_t memory_class = MGE_MEMORY_DEVICE) { return *BudgetOf(memory_class); }
  // The pool of a memory class, made (and the device opened) at first use.
  absl::StatusOr<Pool*> PoolOf(int32_t memory_class = MGE_MEMORY_DEVICE);
  // Asks the reserve policy about a plan and acts on it: the pool learns what to keep free and to retain, and takes `initial`
  // bytes now. Called before a plan's first run.
  absl::Status Reserve(const mge_plan_summary& plan);
  // Host tensors that belong to work on this device: charged to its budget if the host can reach its memory, else to that
  // of the host device.
  HostAllocator& host_allocator() { return *host_allocator_; }
  absl::StatusOr<MemoryInfo> QueryMemory();  // opens the device
  MemoryStats Stats();
  // Bytes of the device's budget that somebody uses now: what pools and plans keep for later is left out.
  uint64_t LiveBytes() const;
  void Trim(int32_t how);  // all pools; MGE_TRIM_EXCESS, MGE_TRIM_ALL
  void TrimIdle();         // pools of which nothing is in use, to what the policy retains; frees what was kept and is over

 private:
  friend class Devices;
  // A pool, and what its policy said last about which plan.
  struct ClassMemory {
    std::unique_ptr<DeviceSlabs> slabs;
    std::unique_ptr<Pool> pool;
    std::mutex mutex;  // of what follows; nothing of the device or of a budget is locked under it
    mge_plan_summary plan = {};
    mge_reserve_decision decision = {};
    uint64_t cap = 0;  // the largest that was decided for a plan
  };
  absl::Status OpenLocked();
  absl::StatusOr<Pool*> PoolLocked(int32_t memory_class);
  absl::StatusOr<std::unique_ptr<Pool>> NewPool(int32_t memory_class, DeviceSlabs* slabs) const;
  absl::StatusOr<mge_reserve_decision> Decide(const mge_plan_summary& plan) const;
  const std::shared_ptr<Budget>& BudgetOf(int32_t memory_class) const {
    return memory_class == MGE_MEMORY_DEVICE ? budget_ : host_budget_;
  }
  int32_t ClassOf(const ClassMemory& memory) const { return static_cast<int32_t>(&memory - classes_.data()); }
  // Asks the policy about a plan, and has the pool act on it.
  absl::StatusOr<mge_reserve_decision> Follow(ClassMemory& memory, mge_plan_summary plan);
  absl::StatusOr<mge_reserve_decision> Ask(const ClassMemory& memory, mge_plan_summary plan) const;
  uint64_t GiveBack(ClassMemory& memory, uint32_t pressure) noexcept;

  std::shared_ptr<Backend> backend_;
  DeviceDescription description_;
  MemoryOptions memory_options_;
  std::string name_, gpu_name_, reason_;
  int number_ = 0;
  std::shared_ptr<Budget> budget_;       // shared: host tensors may outlive the device
  std::shared_ptr<Budget> host_budget_;  // of pinned memory
  std::unique_ptr<HostAllocator> host_allocator_;

  mutable std::mutex mutex_;
  std::atomic<mge_device*> handle_{nullptr};
  std::array<ClassMemory, MGE_MEMORY_CLASS_COUNT> classes_;
  UnfinishedList unfinished_;
  std::atomic<bool> abandoned_{false};
};

// Of page-locked memory: it is of no use where the host has no address for it. kKernelFailed.
absl::Status CheckHostReaches(const Device& device, const mge_reservation& memory);

}  // namespace mge
