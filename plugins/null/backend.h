// SPDX-License-Identifier: Apache-2.0
// The parts of this backend. Each is a class that the host calls through a C table; plugin.cc connects them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "mge/plugin.hpp"

namespace backend {

// An open device. It owns the driver's context and handles. (device.cc)
class Device {
 public:
  static mge::Result List(mge::DeviceList& list);
  explicit Device(uint32_t index) : index_(index) {}
  mge::Result Init();
  mge::Result Health();
  uint32_t index() const { return index_; }
  // If devices can copy to each other: mge::Result Link(Device& to, mge::LinkInfo* out);

 private:
  uint32_t index_;
};

// The driver's calls for memory. (memory.cc)
struct Memory {
  static mge::Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out);
  static void Release(Device& device, const mge_slab& slab);
  static mge::MemoryAmount Info(Device& device);
  // If the driver has stream-ordered release: ReleaseAfter. If it has virtual memory: RangeGranularity, RangeReserve,
  // RangeRelease, RangeCommit, RangeDecommit. Their signatures are in mge/plugin/memory.hpp.
};

// A counter that only increases: a timeline semaphore of the driver, or one event for each value that is not reached yet.
// (queue.cc)
class Fence {
 public:
  explicit Fence(Device&) {}
  void Reach(uint64_t value) { value_ = value; }
  mge::Result HostWait(uint64_t value, uint64_t timeout_ns);

 private:
  std::atomic<uint64_t> value_ = 0;
};

// A stream of the driver. Its destructor waits until enqueued work has ended. This one is synchronous. (queue.cc)
class Queue {
 public:
  Queue(Device&, int32_t /*kind: MGE_QUEUE_...*/) {}
  mge::Result Copy(void* destination, const void* source, uint64_t bytes);
  mge::Result Signal(Fence& fence, uint64_t value);
  mge::Result Wait(Fence& fence, uint64_t value);
  // If work can be recorded: CaptureBegin, CaptureEnd, Replay, CaptureUpdate, and a class Record. Kernels marked
  // MGE_KERNEL_CAPTURE_SAFE are then recorded once and replayed. If devices can copy to each other: CopyPeer. Signatures:
  // mge/plugin/queue.hpp.
};

// A point in time on a queue. Without this class the host uses its own clock around a fence. (queue.cc)
class Stamp {
 public:
  explicit Stamp(Device&) {}
  mge::Result Take(Queue& queue);
  static mge::Result ElapsedUs(Stamp& from, Stamp& to, double* out);

 private:
  uint64_t taken_ns_ = 0;
};

// The order of several kernels for one problem. (strategy.cc)
struct Strategy {
  // The order follows times: the host may use a later candidate that saves more in layout reorders. Without this line the
  // host always uses the first.
  static constexpr bool kByCost = true;
  // The default mode if the user does not set select.strategy. PROFILE: the host times the kernels. REPRODUCIBLE: the host
  // uses only deterministic kernels.
  static constexpr int32_t kMode = MGE_SELECT_HEURISTIC;
  static mge::Result Order(Device& device, const mge::Choice& choice, std::span<uint32_t> order);
};

// Offers groups of nodes that one kernel computes. (claims.cc)
void FindClaims(const mge::Pattern& graph, mge::ClaimList& claims);

}  // namespace backend
