// SPDX-License-Identifier: Apache-2.0
// Events of one device, created once and used again. Each has room in page-locked memory for a copy of a fault word.
#pragma once

#include <mutex>
#include <vector>

#include "plugins/gpu/fault.h"
#include "plugins/gpu/runtime/driver.h"

namespace mge::gpu {

// An event of the driver. `fault` is written by the device before the event is reached.
struct DriverEvent {
  void* handle;
  Fault* fault;
};

// The unused events. Functions are [any]; the caller has made the device's context current, except for Put().
class EventPool {
 public:
  // Returns an event with an empty fault word. Creates a block of events if no unused one is left.
  Result Take(DriverEvent* out);
  void Put(const DriverEvent& event);
  // Destroys all events, also those that were not returned.
  void Destroy();

 private:
  Result Grow();

  std::mutex mutex_;
  std::vector<DriverEvent> free_;  // has room for all events, so that Put() does not allocate
  std::vector<void*> all_;         // handles
  std::vector<void*> blocks_;      // page-locked memory
};

}  // namespace mge::gpu
