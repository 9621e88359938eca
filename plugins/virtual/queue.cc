// SPDX-License-Identifier: Apache-2.0
// Queues, fences and stamps, implemented with streams and events. The operators of plugins/gpu enqueue on the same streams.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "backend.h"
#include "plugins/gpu/launch.h"
#include "plugins/gpu/roofs.h"

namespace mge::virtual_gpu {
namespace {

using software::Stream;

Stream::Kind KindOf(int32_t kind) {
  return kind == MGE_QUEUE_COPY_IN         ? Stream::Kind::kCopyIn
         : kind == MGE_QUEUE_COPY_OUT      ? Stream::Kind::kCopyOut
         : kind == MGE_QUEUE_COMMUNICATION ? Stream::Kind::kCommunication
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

Result Queue::CaptureUpdate(Record& record) {
  std::shared_ptr<const software::Record> work;  // the capture ends also if an error follows
  if (Result r = stream_.EndCapture(&work); !r.ok()) return r;
  const std::vector<software::Task>&now = work->tasks, &before = record.work->tasks;
  auto alike = [](const software::Task& a, const software::Task& b) {
    return a.kind == b.kind && a.bytes == b.bytes && a.launch.kernel == b.launch.kernel;
  };
  if (!std::equal(now.begin(), now.end(), before.begin(), before.end(), alike)) {
    return {MGE_UNIMPLEMENTED, "the captured work is not that of the record"};
  }
  record.work = std::move(work);
  return {};
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

Result EnqueueOn(mge_queue* queue, const Launch& launch) {
  return QueueOf<virtual_gpu::Queue>(queue).stream().Launch(launch);
}

mge_code EnqueueFill(const mge_run* run, void* destination, int byte, uint64_t bytes) {
  return WithoutExceptions(run->error, [&] { return StreamOf(run).Fill(destination, byte, bytes); });
}

mge_code EnqueueCopy(const mge_run* run, void* destination, const void* source, uint64_t bytes) {
  return WithoutExceptions(run->error, [&] { return StreamOf(run).Copy(destination, source, bytes); });
}

int MatrixCapability(mge_device*) { return 80; }  // the emulation has these instructions

bool HasLibraryOfProducts(mge_device*, mge_dtype) { return false; }

Roofs RoofsOf(mge_device*) { return kAverageRoofs; }

Fault* FaultOf(const mge_run* run) { return StreamOf(run).kernel_fault(); }

}  // namespace mge::gpu
