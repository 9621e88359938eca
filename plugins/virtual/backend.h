// SPDX-License-Identifier: Apache-2.0
// The parts of this backend, implemented with the software GPU of plugins/gpu.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "mge/plugin.hpp"
#include "plugins/gpu/software/device.h"
#include "plugins/gpu/software/shared_group.h"
#include "plugins/gpu/software/stream.h"
#include "settings.h"

namespace mge::virtual_gpu {

// Returns the settings. Valid between start and stop.
const Options& CurrentOptions();

// An open device. (device.cc)
class Device {
 public:
  static Result List(DeviceList& list);
  explicit Device(uint32_t index) : index_(index) {}
  Result Init();  // fails if a setting is invalid
  Result Health() { return gpu_->Health(); }
  Result Link(Device& to, LinkInfo* out);
  software::SoftwareDevice& gpu() { return *gpu_; }

 private:
  uint32_t index_;
  std::optional<software::SoftwareDevice> gpu_;
};

// Device memory and page-locked memory. (memory.cc)
struct Memory {
  static Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out);
  static void Release(Device& device, const mge_slab& slab);
  static void ReleaseAfter(Device& device, const mge_slab& slab, const mge_fence_point& last_use);
  static MemoryAmount Info(Device& device);
  static uint64_t RangeGranularity(Device& device);
  static Result RangeReserve(Device& device, uint64_t bytes, mge_slab* out);
  static void RangeRelease(Device& device, const mge_slab& range);
  static Result RangeCommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes);
  static void RangeDecommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes);
};

// An event, shared with the streams that will signal it. (queue.cc)
class Fence {
 public:
  explicit Fence(Device& device) : event_(device.gpu().MakeEvent()) {}
  Result HostWait(uint64_t value, uint64_t timeout_ns) { return event_->HostWait(value, timeout_ns); }
  const std::shared_ptr<software::Event>& event() const { return event_; }

 private:
  std::shared_ptr<software::Event> event_;
};

// Captured work.
struct Record {
  std::shared_ptr<const software::Record> work;
};

// A stream. The operators of plugins/gpu enqueue on it, too. (queue.cc)
class Queue {
 public:
  Queue(Device& device, int32_t kind);
  Result Init() { return stream_.device().Health(); }
  Result Copy(void* to, const void* from, uint64_t bytes) { return stream_.Copy(to, from, bytes); }
  Result CopyPeer(Device& to, void* destination, Device& from, const void* source, uint64_t bytes);
  Result Signal(Fence& fence, uint64_t value) { return stream_.Signal(fence.event(), value); }
  Result Wait(Fence& fence, uint64_t value) { return stream_.Wait(fence.event(), value); }
  Result CaptureBegin() { return stream_.BeginCapture(); }
  Result CaptureEnd(Record** out);
  Result CaptureUpdate(Record& record);
  Result Replay(Record& record) { return stream_.Replay(record.work); }
  software::Stream& stream() { return stream_; }

 private:
  software::Stream stream_;
};

// A point in time on a stream. (queue.cc)
class Stamp {
 public:
  explicit Stamp(Device&) : stamp_(std::make_shared<software::Stamp>(0)) {}
  Result Take(Queue& queue) { return queue.stream().Mark(stamp_); }
  static Result ElapsedUs(Stamp& from, Stamp& to, double* out);

 private:
  std::shared_ptr<software::Stamp> stamp_;
};

// One rank of a group of virtual devices, in one or several processes. (collective.cc)
class Communicator {
 public:
  static Result UniqueId(mge::UniqueId out) { return software::SharedGroup::NewId(out); }
  Communicator(Device& device, ConstUniqueId id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns);
  Result Init();
  void Abort();
  // Every operation is enqueued at once and waits in its own queue's thread, so operations of a group need nothing more.
  static Result GroupBegin();
  static Result GroupEnd();
  Result AllReduce(Queue& queue, const void* source, void* destination, uint64_t count, mge_dtype dtype, int32_t reduction);
  Result Broadcast(Queue& queue, const void* source, void* destination, uint64_t count, mge_dtype dtype, uint32_t root);

 private:
  class Work;
  Result Enqueue(Queue& queue, const software::Exchange& exchange, const void* source, void* destination);

  Device& device_;
  std::array<uint8_t, MGE_UNIQUE_ID_BYTES> id_;
  uint32_t rank_, ranks_;
  uint64_t timeout_ns_;
  std::shared_ptr<software::SharedGroup> group_;
};

// The rows of plugins/gpu, and the wrong kernel. (kernels/wrong.cc)
struct Kernels {
  static const KernelRow* const* Rows(uint64_t* count);
};

// Returns the table of mge/faults.h, or nullptr for another name. (faults.cc)
const void* FaultsExtension(std::string_view name, uint32_t min_version);
// Returns the table of mge/native_streams.h, or nullptr for another name. (native_streams.cc)
const void* NativeStreamsExtension(std::string_view name, uint32_t min_version);

}  // namespace mge::virtual_gpu
