// SPDX-License-Identifier: Apache-2.0
// Queues and fences, implemented with streams and events. The operators of plugins/gpu enqueue on the same streams.
#include <string>

#include "handles.h"
#include "plugins/gpu/launch.h"

namespace mge::virtual_gpu {
namespace {

using software::Event;
using software::Record;
using software::Stream;
using RecordHandle = std::shared_ptr<const Record>;

mge_code Create(mge_device* device, int32_t kind, mge_queue** out, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    Stream::Kind stream = Stream::Kind::kCompute;
    switch (kind) {
      case MGE_QUEUE_COMPUTE: break;
      case MGE_QUEUE_COPY_IN: stream = Stream::Kind::kCopyIn; break;
      case MGE_QUEUE_COPY_OUT: stream = Stream::Kind::kCopyOut; break;
      default: return Report(error, MGE_UNIMPLEMENTED, "queues of kind " + std::to_string(kind) + " do not exist");
    }
    if (Result r = device->gpu.Health(); !r.ok()) return Report(error, r);
    *out = new mge_queue{{device->gpu, stream}};
    return MGE_OK;
  });
}

void Destroy(mge_queue* queue) noexcept { delete queue; }

mge_code Copy(mge_queue* queue, void* destination, const void* source, uint64_t bytes, mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, queue->stream.Copy(destination, source, bytes)); });
}

mge_code CopyPeer(mge_queue* queue, mge_device* to, void* destination, mge_device* from, const void* source, uint64_t bytes,
                  mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, queue->stream.CopyPeer(to->gpu, destination, from->gpu, source, bytes)); });
}

mge_code FenceCreate(mge_device* device, mge_fence** out, mge_error* error) noexcept {
  return Guard(error, [&] {
    *out = new mge_fence{device->gpu.MakeEvent()};
    return MGE_OK;
  });
}

void FenceDestroy(mge_fence* fence) noexcept { delete fence; }

mge_code Signal(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, queue->stream.Signal(fence->event, value)); });
}

mge_code Wait(mge_queue* queue, mge_fence* fence, uint64_t value, mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, queue->stream.Wait(fence->event, value)); });
}

mge_code HostWait(mge_fence* fence, uint64_t value, uint64_t timeout_ns, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    Event::Answer answer = fence->event->HostWait(value, timeout_ns);
    if (answer.reached) return MGE_OK;
    if (answer.failure) return Report(error, answer.failure->code, answer.failure->text);
    return Report(error, MGE_DEADLINE_EXCEEDED, "the fence was not reached in time");
  });
}

mge_code CaptureBegin(mge_queue* queue, mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, queue->stream.BeginCapture()); });
}

mge_code CaptureEnd(mge_queue* queue, void** out_record, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    RecordHandle record;  // the capture ends also if an error follows
    if (Result r = queue->stream.EndCapture(&record); !r.ok()) return Report(error, r);
    *out_record = new RecordHandle(std::move(record));
    return MGE_OK;
  });
}

mge_code Replay(mge_queue* queue, void* record, mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, queue->stream.Replay(*static_cast<RecordHandle*>(record))); });
}

void RecordDestroy(mge_device*, void* record) noexcept { delete static_cast<RecordHandle*>(record); }

mge_code StampCreate(mge_device*, mge_stamp** out, mge_error* error) noexcept {
  return Guard(error, [&] {
    *out = new mge_stamp{std::make_shared<software::Stamp>(0)};
    return MGE_OK;
  });
}

void StampDestroy(mge_stamp* stamp) noexcept { delete stamp; }

mge_code TakeStamp(mge_queue* queue, mge_stamp* stamp, mge_error* error) noexcept {
  return Guard(error, [&] { return Report(error, queue->stream.Mark(stamp->stamp)); });
}

mge_code ElapsedUs(mge_stamp* from, mge_stamp* to, double* out, mge_error* error) noexcept {
  auto begin = from->stamp->load(), end = to->stamp->load();
  if (!begin || !end) return Report(error, MGE_FAILED_PRECONDITION, "a stamp was not taken yet");
  *out = std::chrono::duration<double, std::micro>(software::Clock::duration(end - begin)).count();
  return MGE_OK;
}

}  // namespace

const mge_queue_api kQueueTable = Table<mge_queue_api>([](auto& t) {
  t.create = Create;
  t.destroy = Destroy;
  t.copy = Copy;
  t.fence_create = FenceCreate;
  t.fence_destroy = FenceDestroy;
  t.signal = Signal;
  t.wait = Wait;
  t.host_wait = HostWait;
  t.capture_begin = CaptureBegin;
  t.capture_end = CaptureEnd;
  t.replay = Replay;
  t.record_destroy = RecordDestroy;
  t.copy_peer = CopyPeer;
});

const mge_profile_api kProfileTable = Table<mge_profile_api>([](auto& t) {
  t.stamp_create = StampCreate;
  t.stamp_destroy = StampDestroy;
  t.stamp = TakeStamp;
  t.elapsed_us = ElapsedUs;
});

}  // namespace mge::virtual_gpu

namespace mge::gpu {

mge_code Enqueue(const mge_run* run, const Launch& launch) {
  return Guard(run->error, [&] { return Report(run->error, run->queue->stream.Launch(launch)); });
}

mge_code EnqueueFill(const mge_run* run, void* destination, int byte, uint64_t bytes) {
  return Guard(run->error, [&] { return Report(run->error, run->queue->stream.Fill(destination, byte, bytes)); });
}

mge_code EnqueueCopy(const mge_run* run, void* destination, const void* source, uint64_t bytes) {
  return Guard(run->error, [&] { return Report(run->error, run->queue->stream.Copy(destination, source, bytes)); });
}

Fault* FaultOf(const mge_run* run) { return run->queue->stream.kernel_fault(); }

}  // namespace mge::gpu
