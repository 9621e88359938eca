// SPDX-License-Identifier: Apache-2.0
// Queues, fences and stamps, implemented with streams and events. The operators of plugins/gpu enqueue on the same streams.
#include <chrono>
#include <utility>

#include "backend.h"
#include "plugins/gpu/launch.h"

namespace mge::virtual_gpu {
namespace {

using software::Stream;

Stream::Kind KindOf(int32_t kind) {
  return kind == MGE_QUEUE_COPY_IN    ? Stream::Kind::kCopyIn
         : kind == MGE_QUEUE_COPY_OUT ? Stream::Kind::kCopyOut
                                      : Stream::Kind::kCompute;
}

}  // namespace

Queue::Queue(Device& device, int32_t kind) : stream_(device.gpu(), KindOf(kind)) {}

Result Queue::CopyPeer(Device& to, void* destination, Device& from, const void* source, uint64_t bytes) {
  return stream_.CopyPeer(to.gpu(), destination, from.gpu(), source, bytes);
}

Result Queue::CaptureEnd(Record** out) {
  std::shared_ptr<const software::Record> work;  // the capture ends also if an error follows
  if (Result r = stream_.EndCapture(&work); !r.ok()) return r;
  *out = new Record{std::move(work)};
  return {};
}

Result Fence::HostWait(uint64_t value, uint64_t timeout_ns) {
  software::Event::Answer answer = event_->HostWait(value, timeout_ns);
  if (answer.reached) return {};
  if (answer.failure) return {answer.failure->code, answer.failure->text};
  return {MGE_DEADLINE_EXCEEDED, "timed out"};  // a short text, for which std::string allocates nothing
}

Result Stamp::ElapsedUs(Stamp& from, Stamp& to, double* out) {
  auto begin = from.stamp_->load(), end = to.stamp_->load();
  if (!begin || !end) return {MGE_FAILED_PRECONDITION, "a stamp was not taken yet"};
  *out = std::chrono::duration<double, std::micro>(software::Clock::duration(end - begin)).count();
  return {};
}

}  // namespace mge::virtual_gpu

namespace mge::gpu {
namespace {

software::Stream& StreamOf(const mge_run* run) { return QueueOf<virtual_gpu::Queue>(run).stream(); }

}  // namespace

mge_code Enqueue(const mge_run* run, const Launch& launch) {
  return WithoutExceptions(run->error, [&] { return StreamOf(run).Launch(launch); });
}

mge_code EnqueueFill(const mge_run* run, void* destination, int byte, uint64_t bytes) {
  return WithoutExceptions(run->error, [&] { return StreamOf(run).Fill(destination, byte, bytes); });
}

mge_code EnqueueCopy(const mge_run* run, void* destination, const void* source, uint64_t bytes) {
  return WithoutExceptions(run->error, [&] { return StreamOf(run).Copy(destination, source, bytes); });
}

Fault* FaultOf(const mge_run* run) { return StreamOf(run).kernel_fault(); }

}  // namespace mge::gpu
