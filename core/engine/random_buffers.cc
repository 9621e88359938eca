// SPDX-License-Identifier: Apache-2.0
#include "core/engine/random_buffers.h"

#include "core/plugin/ask.h"

namespace mge {
namespace {

uint64_t BytesOf(const RandomBase& base) { return base.steps.size() * kRandomStateBytes; }

}  // namespace

absl::StatusOr<std::unique_ptr<RandomBuffers>> RandomBuffers::Create(const Plan& plan, std::vector<void*>& bases) {
  std::unique_ptr<RandomBuffers> out(new RandomBuffers);
  out->buffers_.reserve(plan.random.size());
  for (const RandomBase& base : plan.random) {
    Buffer& b = out->buffers_.emplace_back();
    b.base = &base;
    const bool queued = base.queue != kCallingThread;
    MGE_ASSIGN_OR_RETURN(Pool * host, base.device->PoolOf(queued ? MGE_MEMORY_PINNED : MGE_MEMORY_DEVICE));
    MGE_ASSIGN_OR_RETURN(b.host, host->Acquire(BytesOf(base)));
    b.host_pool = host;
    MGE_RETURN_IF_ERROR(CheckHostReaches(*base.device, b.host));
    bases[base.base] = b.host.address;
    if (!queued) continue;
    MGE_ASSIGN_OR_RETURN(Pool * device, base.device->PoolOf(MGE_MEMORY_DEVICE));
    MGE_ASSIGN_OR_RETURN(b.device, device->Acquire(BytesOf(base)));
    b.device_pool = device;
    bases[base.base] = b.device.address;
  }
  return out;
}

RandomBuffers::~RandomBuffers() {
  for (const Buffer& b : buffers_) {
    if (b.base->device->Orphaned()) continue;
    if (b.host_pool) b.host_pool->Release(b.host);
    if (b.device_pool) b.device_pool->Release(b.device);
  }
}

absl::Status RandomBuffers::BeginRun(RunState& control, const InstanceQueues* queues) {
  for (const Buffer& b : buffers_) {
    auto* state = static_cast<uint64_t*>(b.host.host_address);
    for (const RandomStep& step : b.base->steps) {
      *state++ = control.seed;
      *state++ = control.next_random;
      control.next_random += step.blocks;
    }
    if (!b.device_pool) continue;
    const Device& device = *b.base->device;
    MGE_RETURN_IF_ERROR(QueryDevice(device, "copying the counters of random numbers", [&](mge_error* e) {
      return device.queue_api()->copy(queues->queue(b.base->queue), b.device.address, b.host.address, BytesOf(*b.base), e);
    }));
  }
  return absl::OkStatus();
}

}  // namespace mge
