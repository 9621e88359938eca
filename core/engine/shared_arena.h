// SPDX-License-Identifier: Apache-2.0
// Shared arenas: memory of a device that the plans of a runtime use in turn (memory.static_policy).
//
// Why: each plan keeps its arenas for the next run. A process with several models, or with many shapes of one, then holds
// the sum of their arenas, although one of them runs at a time.
//
// Ways to provide the arenas of a plan (ArenaUse):
//   own       each instance keeps arenas of its own
//   shared    runs lease one arena per device, as large as the largest plan that has run needs
//   returned  the same, but the arena goes back to the device's pool after each run
//   per run   each run takes memory from the device's pool and returns it; runs may overlap
// With the last two, the pool is a common store. A pool over a range of addresses (growing_pool.h) maps pages where a run
// needs them. Before it takes more from the device, it unmaps the pages that no run uses.
//
// Algorithm: a run leases the arena of each of its devices, binds the addresses, and ends the lease when its work is over.
// If a plan needs more than the arena has, the memory is released first and a larger block is acquired, so the two never
// exist together. The arena has moved then: instances drop the segments that they captured with the old addresses. A lease
// while another run has one is an error, because the runs would overwrite each other's values. The arena is released with
// the last plan that uses it. It is also released if a request for memory of the device would fail otherwise, unless a run
// leases it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/plan/plan.h"
#include "core/plugin/device.h"

namespace mge {

// The shared arena of one device: some blocks of each of its memory classes. Thread-safe. The device must outlive it.
class SharedArena {
 public:
  struct Request {
    int32_t memory_class;
    uint64_t bytes;
    uint64_t alignment;
  };

  // If `keeps` is false, End() returns the memory to the device's pools.
  SharedArena(Device& device, bool keeps) : device_(device), keeps_(keeps) {}
  ~SharedArena();  // no run may lease it
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  // Leases the arena to one run. Sets `blocks` to one block per request, valid until End(). Fails with kApiMisuse if another
  // run has the lease, and with kOverBudget or kOutOfMemory.
  absl::Status Lease(std::span<const Request> requests, std::span<mge_reservation> blocks);
  void End();

  // Releases the memory unless a run leases it.
  void GiveUpIdle();

  Device& device() const { return device_; }
  bool keeps() const { return keeps_; }
  // Returns the bytes of the arena in all memory classes.
  uint64_t bytes() const;

 private:
  struct ClassMemory {
    Pool* pool = nullptr;  // nullptr before the first lease of this class
    std::vector<mge_reservation> blocks = {};
    std::atomic<uint64_t> bytes{0};
  };
  absl::Status Fit(std::span<const Request> requests, std::span<mge_reservation> blocks);
  absl::Status Grow(ClassMemory& memory, mge_reservation& block, const Request& request);
  absl::Status UsePool(ClassMemory& memory, int32_t memory_class);
  static uint64_t Release(ClassMemory& memory);
  // Releases the memory of a class unless a run leases it. Returns the bytes released.
  uint64_t ReleaseIdle(ClassMemory& memory);

  Device& device_;
  const bool keeps_;
  std::mutex mutex_;                 // not held while memory is acquired
  std::atomic<bool> leased_{false};  // set under mutex_; whoever has the lease owns classes_, otherwise mutex_ guards them
  std::array<ClassMemory, MGE_MEMORY_CLASS_COUNT> classes_;
};

// The shared arenas of a runtime, one per device. Thread-safe.
class SharedArenas {
 public:
  // Returns the arenas of the devices on which the plan has memory. An arena lives as long as a plan uses it.
  std::vector<std::shared_ptr<SharedArena>> Of(const Plan& plan, bool keeps);

 private:
  std::mutex mutex_;
  std::map<std::pair<Device*, bool>, std::weak_ptr<SharedArena>> arenas_;  // by device and SharedArena::keeps_
};

// The way in which the arenas of a plan are provided.
struct ArenaUse {
  std::vector<std::shared_ptr<SharedArena>> shared = {};  // not empty: runs lease these, one per device of plan.arenas
  bool per_run = false;                                   // runs take memory from the devices' pools
  bool own() const { return shared.empty() && !per_run; }
  std::string_view name() const;  // "own", "shared", "returned" or "per run"
};

// The leases by which the runs of one instance get the memory of a plan's arenas. Not thread-safe.
class ArenaLeases {
 public:
  // `use` is not own(). It and the plan must outlive this object.
  ArenaLeases(const Plan& plan, const ArenaUse& use);
  ~ArenaLeases() { End(); }
  ArenaLeases(const ArenaLeases&) = delete;
  ArenaLeases& operator=(const ArenaLeases&) = delete;

  // Leases all arenas for a run and sets their bases. Returns true if an address differs from that of the run before. Fails
  // like SharedArena::Lease(), and then leases none.
  absl::StatusOr<bool> Begin(std::vector<void*>& bases);
  void End();
  // Returns the bytes of the blocks that the latest run used.
  int64_t bytes() const { return bytes_; }

 private:
  struct Lease {
    Device* device;
    SharedArena* arena;  // nullptr: the blocks are from the device's pools
    std::vector<const Arena*> plan_arenas = {};
    std::vector<SharedArena::Request> requests = {};
    std::vector<mge_reservation> blocks = {};
    bool held = false;
  };
  absl::Status Take(Lease& lease, std::vector<void*>& bases, bool& moved);
  static absl::Status TakeFromPools(Lease& lease);
  static void ReturnToPools(Lease& lease, size_t count);

  const Plan& plan_;
  std::vector<Lease> leases_;
  int64_t bytes_ = 0;
};

}  // namespace mge
