// SPDX-License-Identifier: Apache-2.0
// A fence: one event of the driver for each value that was signalled and is not known to be reached.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "plugins/gpu/runtime/collective_watch.h"
#include "plugins/gpu/runtime/device.h"

namespace mge::gpu {

class Fence {
 public:
  explicit Fence(Device& device) : device_(device) {}
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  Result HostWait(uint64_t value, uint64_t timeout_ns);

  // Called by a queue. Records an event of the pool with `record` and keeps it for the value, which must increase. `watch`
  // (nullable): the collective operations before it.
  template <typename F>
  Result Signal(uint64_t value, const std::shared_ptr<CollectiveWatch>& watch, F&& record) {
    std::lock_guard lock(mutex_);
    if (Result r = Prepare(value); !r.ok()) return r;
    DriverEvent event = {};
    if (Result r = device_.events().Take(&event); !r.ok()) return r;
    if (Result r = record(event); !r.ok()) return r;  // not returned to the pool: a copy to its memory may be enqueued
    signals_[(first_ + count_++) % signals_.size()] = {value, event, 0, watch};
    announced_ = value;
    return {};
  }
  // Called by a queue. Enqueues a wait for the value's event with `wait`, unless the value is reached.
  template <typename F>
  Result Wait(uint64_t value, F&& wait) {
    std::lock_guard lock(mutex_);
    if (Result r = CheckAnnounced(value); !r.ok()) return r;
    SignalOf* signal = Find(value);
    return signal ? wait(signal->event) : Result();
  }

 private:
  struct SignalOf {
    uint64_t value;
    DriverEvent event;
    int waiters;  // threads in HostWait()
    std::shared_ptr<CollectiveWatch> watch;
  };
  Result Prepare(uint64_t value);
  Result CheckAnnounced(uint64_t value) const;
  SignalOf* Find(uint64_t value);  // null: it is reached
  void Reached(uint64_t value);    // returns the events of all values up to it to the pool, if nobody waits for them

  Device& device_;
  std::mutex mutex_;
  // A ring, so that a run does not allocate: count_ entries from first_ on, in the order of their values.
  std::vector<SignalOf> signals_{8};
  size_t first_ = 0, count_ = 0;
  uint64_t announced_ = 0, reached_ = 0;
  std::atomic<int64_t> last_wait_ns_ = 0;  // of a thread of the host that waited to the end
  Fault fault_ = {};                       // the outcome of the values from faulted_from_ on
  uint64_t faulted_from_ = 0;
  Result failure_;  // of collective operations: the outcome of the values from failed_from_ on
  uint64_t failed_from_ = 0;
};

}  // namespace mge::gpu
