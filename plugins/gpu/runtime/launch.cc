// SPDX-License-Identifier: Apache-2.0
// The backend's side of launch.h: the operators of plugins/gpu enqueue on the stream of the run's queue.
#include "plugins/gpu/launch.h"

#include "plugins/gpu/runtime/queue.h"

namespace mge::gpu {

mge_code Enqueue(const mge_run* run, const Launch& launch) {
  return WithoutExceptions(run->error, [&] { return QueueOf<Queue>(run).Launch(launch); });
}

Result EnqueueOn(mge_queue* queue, const Launch& launch) { return QueueOf<Queue>(queue).Launch(launch); }

mge_code EnqueueFill(const mge_run* run, void* destination, int byte, uint64_t bytes) {
  return WithoutExceptions(run->error, [&] { return QueueOf<Queue>(run).Fill(destination, byte, bytes); });
}

mge_code EnqueueCopy(const mge_run* run, void* destination, const void* source, uint64_t bytes) {
  return WithoutExceptions(run->error, [&] { return QueueOf<Queue>(run).Copy(destination, source, bytes); });
}

int MatrixCapability(mge_device* device) {
  const Vendor& v = TheVendor();
  const Architecture a = DeviceOf<Device>(device).architecture();
  return v.code_capability ? v.code_capability(a.major, a.minor) : 0;
}

Roofs RoofsOf(mge_device* device) { return DeviceOf<Device>(device).roofs(); }

Fault* FaultOf(const mge_run* run) { return QueueOf<Queue>(run).FaultWord(); }

}  // namespace mge::gpu
