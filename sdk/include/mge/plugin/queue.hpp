// SPDX-License-Identifier: Apache-2.0
// Queues, fences and stamps: for devices that work asynchronously. A device whose kernels run in the calling thread needs
// none of them. With queues, Launch enqueues on mge::QueueOf<Queue>(run) and returns. `this` and `run` are valid until the
// enqueued work has ended. If it fails, every later signal of its queue carries the failure. Queues that wait for such a
// signal need not fail: the host passes the failure on.
//
//   class Queue {                              // used by one thread at a time
//    public:
//     Queue(Device&, int32_t kind);            // MGE_QUEUE_COMPUTE, _COPY_IN, _COPY_OUT, _COMMUNICATION
//     ~Queue();                                // waits for enqueued work
//     mge::Result Copy(void* to, const void* from, uint64_t bytes);
//     mge::Result Signal(Fence&, uint64_t value);
//     mge::Result Wait(Fence&, uint64_t value);   // after the Signal of that value, never before
//     // optional, all or none: work enqueued between begin and end is recorded instead of run
//     mge::Result CaptureBegin();
//     mge::Result CaptureEnd(Record** out);    // of class B::Record; deleted after its last replay
//     mge::Result Replay(Record&);
//     // optional, with the three above: ends a capture, and replaces the work of a record that is not running
//     mge::Result CaptureUpdate(Record&);
//     // optional: called only if Device::Link sets peer
//     mge::Result CopyPeer(Device& to, void* destination, Device& from, const void* source, uint64_t bytes);
//   };
//   class Fence {                              // a counter that only increases: with a driver, one event for each value
//    public:                                   // that was signalled and not yet reached
//     explicit Fence(Device&);
//     mge::Result HostWait(uint64_t value, uint64_t timeout_ns);   // from any thread
//   };
//   class Stamp {                              // optional, B::Stamp: a point in time on a queue
//    public:
//     explicit Stamp(Device&);
//     mge::Result Take(Queue&);
//     static mge::Result ElapsedUs(Stamp& from, Stamp& to, double* out);
//   };
#pragma once

#include <cstdint>
#include <type_traits>

#include "mge/plugin/error.hpp"

namespace mge::internal {

// The table of B::Queue, B::Fence and B::Record.
template <typename B>
struct QueueTable {
  using D = typename B::Device;
  using Q = typename B::Queue;
  using F = typename B::Fence;
  using R = typename B::Record;
  static mge_code Create(mge_device* device, int32_t kind, mge_queue** out, mge_error* error) noexcept {
    if (kind < MGE_QUEUE_COMPUTE || kind > MGE_QUEUE_COMMUNICATION) {
      return Report(error, MGE_UNIMPLEMENTED, "unknown kind of queue");
    }
    return Make<Q>(out, error, As<D>(device), kind);
  }
  static mge_code Copy(mge_queue* queue, void* to, const void* from, uint64_t bytes, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return As<Q>(queue).Copy(to, from, bytes); });
  }
  static mge_code FenceCreate(mge_device* device, mge_fence** out, mge_error* error) noexcept {
    return Make<F>(out, error, As<D>(device));
  }
  static mge_code Signal(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return As<Q>(queue).Signal(As<F>(fence), value); });
  }
  static mge_code Wait(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return As<Q>(queue).Wait(As<F>(fence), value); });
  }
  static mge_code HostWait(mge_fence* fence, uint64_t value, uint64_t timeout_ns, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return As<F>(fence).HostWait(value, timeout_ns); });
  }
  static mge_code CaptureBegin(mge_queue* queue, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return As<Q>(queue).CaptureBegin(); });
  }
  static mge_code CaptureEnd(mge_queue* queue, void** out, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result {
      R* record = nullptr;
      Result r = As<Q>(queue).CaptureEnd(&record);
      *out = record;
      return r;
    });
  }
  static mge_code Replay(mge_queue* queue, void* record, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return As<Q>(queue).Replay(*static_cast<R*>(record)); });
  }
  static mge_code CaptureUpdate(mge_queue* queue, void* record, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return As<Q>(queue).CaptureUpdate(*static_cast<R*>(record)); });
  }
  static void RecordDestroy(mge_device*, void* record) noexcept { delete static_cast<R*>(record); }
  static mge_code CopyPeer(mge_queue* queue, mge_device* to, void* destination, mge_device* from, const void* source,
                           uint64_t bytes, mge_error* error) noexcept {
    return WithoutExceptions(
        error, [&]() -> Result { return As<Q>(queue).CopyPeer(As<D>(to), destination, As<D>(from), source, bytes); });
  }
  static constexpr mge_queue_api Api() {
    return Table<mge_queue_api>([](auto& t) {
      t.create = Create;
      t.destroy = Unmake<Q, mge_queue>;
      t.copy = Copy;
      t.fence_create = FenceCreate;
      t.fence_destroy = Unmake<F, mge_fence>;
      t.signal = Signal;
      t.wait = Wait;
      t.host_wait = HostWait;
      if constexpr (requires { &Q::CaptureBegin; }) {
        static_assert(!std::is_void_v<R>, "Queue::CaptureBegin: a backend that records names a class Record");
        t.capture_begin = CaptureBegin;
        t.capture_end = CaptureEnd;
        t.replay = Replay;
        t.record_destroy = RecordDestroy;
        if constexpr (requires { &Q::CaptureUpdate; }) t.capture_update = CaptureUpdate;
      }
      if constexpr (requires { &Q::CopyPeer; }) t.copy_peer = CopyPeer;
    });
  }
};

// The table of B::Stamp.
template <typename B>
struct ProfileTable {
  using D = typename B::Device;
  using S = typename B::Stamp;
  static mge_code Create(mge_device* device, mge_stamp** out, mge_error* error) noexcept {
    return Make<S>(out, error, As<D>(device));
  }
  static mge_code Take(mge_queue* queue, mge_stamp* stamp, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return As<S>(stamp).Take(As<typename B::Queue>(queue)); });
  }
  static mge_code Elapsed(mge_stamp* from, mge_stamp* to, double* out, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return S::ElapsedUs(As<S>(from), As<S>(to), out); });
  }
  static constexpr mge_profile_api Api() {
    return Table<mge_profile_api>([](auto& t) {
      t.stamp_create = Create;
      t.stamp_destroy = Unmake<S, mge_stamp>;
      t.stamp = Take;
      t.elapsed_us = Elapsed;
    });
  }
};

}  // namespace mge::internal
