// SPDX-License-Identifier: Apache-2.0
// The parts of this backend. Each is a class that the host calls through a table of C; plugin.cc joins them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>

#include "mge/plugin.hpp"

namespace backend {

// An open device: put the context and the handles of your driver here. (device.cc)
class Device {
 public:
  static mge::Result List(mge::DeviceList& list);
  explicit Device(uint32_t index) : index_(index) {}
  mge::Result Init();
  mge::Result Health();
  uint32_t index() const { return index_; }
  // Where devices reach each other: mge::Result Link(Device& to, mge::LinkInfo* out);

 private:
  uint32_t index_;
};

// The driver's calls for memory. (memory.cc)
struct Memory {
  static mge::Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out);
  static void Release(Device& device, const mge_slab& slab);
  static mge::MemoryAmount Info(Device& device);
  // Where the driver releases in the order of a queue: ReleaseAfter. Where it has virtual memory: RangeGranularity,
  // RangeReserve, RangeRelease, RangeCommit, RangeDecommit. Their signatures are in mge/plugin/memory.hpp.
};

// A counter that only grows; a timeline semaphore or a list of events of your driver. (queue.cc)
class Fence {
 public:
  explicit Fence(Device&) {}
  void Reach(uint64_t value);
  mge::Result HostWait(uint64_t value, uint64_t timeout_ns);

 private:
  std::mutex mutex_;
  std::condition_variable grown_;
  uint64_t value_ = 0;
};

// A stream of your driver, whose destructor waits until what was enqueued has ended. This one does everything at once.
// (queue.cc)
class Queue {
 public:
  Queue(Device&, int32_t /*kind: compute, copy in, copy out*/) {}
  mge::Result Copy(void* destination, const void* source, uint64_t bytes);
  mge::Result Signal(Fence& fence, uint64_t value);
  mge::Result Wait(Fence& fence, uint64_t value);
  // Where work can be recorded: CaptureBegin, CaptureEnd, Replay, and a class Record; kernels marked MGE_KERNEL_CAPTURE_SAFE
  // are then recorded once and replayed. Where devices reach each other: CopyPeer. Signatures: mge/plugin/queue.hpp.
};

// A point of time on a queue; without it the host takes its own clock around a fence. (queue.cc)
class Stamp {
 public:
  explicit Stamp(Device&) {}
  mge::Result Take(Queue& queue);
  static mge::Result ElapsedUs(Stamp& from, Stamp& to, double* out);

 private:
  uint64_t taken_ns_ = 0;
};

// Which of several kernels is best. (strategy.cc)
struct Strategy {
  // The order is that of times: where reorders between layouts make up for it, the host may take a later one. Without this
  // line it takes the first.
  static constexpr bool kByCost = true;
  // The mode where the user names none (select.strategy): PROFILE has the host time the kernels, REPRODUCIBLE has it take
  // deterministic ones only.
  static constexpr int32_t kMode = MGE_SELECT_HEURISTIC;
  static mge::Result Order(Device& device, const mge::Choice& choice, std::span<uint32_t> order);
};

// Groups of nodes that one kernel computes. (claims.cc)
void FindClaims(const mge::Pattern& graph, mge::ClaimList& claims);

}  // namespace backend
