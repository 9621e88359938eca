// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/events.h"

namespace mge::gpu {
namespace {

constexpr size_t kBlock = 32;           // events
constexpr unsigned kWithoutTiming = 2;  // CU_EVENT_DISABLE_TIMING
}  // namespace

Result EventPool::Grow() {
  const Driver& d = TheDriver();
  free_.reserve(all_.size() + kBlock);
  all_.reserve(all_.size() + kBlock);
  blocks_.reserve(blocks_.size() + 1);
  void* block = nullptr;
  if (Result r = Call(d.host_allocate, &block, kBlock * sizeof(Fault), kForAllContexts); !r.ok()) return r;
  blocks_.push_back(block);
  for (size_t i = 0; i < kBlock; ++i) {
    void* event = nullptr;
    if (Result r = Call(d.event_create, &event, kWithoutTiming); !r.ok()) {
      return i > 0 ? Result() : r;  // some events are enough for now
    }
    all_.push_back(event);
    free_.push_back({event, static_cast<Fault*>(block) + i});
  }
  return {};
}

Result EventPool::Take(DriverEvent* out) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (Result r = Grow(); !r.ok()) return r;
  }
  *out = free_.back();
  free_.pop_back();
  out->fault->what = Fault::kNone;
  return {};
}

void EventPool::Put(const DriverEvent& event) {
  std::lock_guard lock(mutex_);
  free_.push_back(event);
}

void EventPool::Destroy() {
  const Driver& d = TheDriver();
  for (void* event : all_) d.event_destroy.call(event);
  for (void* block : blocks_) d.host_release.call(block);
  all_.clear();
  blocks_.clear();
  free_.clear();
}

}  // namespace mge::gpu
