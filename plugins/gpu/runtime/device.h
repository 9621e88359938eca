// SPDX-License-Identifier: Apache-2.0
// An open device: its primary context, the images that it has loaded, its events, and whether it is lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plugins/gpu/roofs.h"
#include "plugins/gpu/runtime/compiled_kernels.h"
#include "plugins/gpu/runtime/driver.h"
#include "plugins/gpu/runtime/events.h"
#include "plugins/gpu/runtime/images.h"

namespace mge::gpu {

class Device {
 public:
  static Result List(DeviceList& list);
  explicit Device(uint32_t index) : ordinal_(static_cast<int>(index)), name_(TheVendor().name + std::to_string(index)) {}
  ~Device();
  Result Init();
  Result Health();
  Result Link(Device& to, LinkInfo* out);

  int ordinal() const { return ordinal_; }
  void* context() const { return context_; }
  const std::string& name() const { return name_; }
  LoadedImages& images() { return images_; }
  CompiledKernels& compiled() { return compiled_; }
  Architecture architecture() const;
  const Roofs& roofs() const { return roofs_; }
  EventPool& events() { return events_; }
  // Returns the unit of memory that is committed to ranges, in bytes, or 0 if the device has no ranges.
  uint64_t granularity() const { return granularity_; }
  // Returns the devices that may use memory of its ranges: itself and its peers.
  std::span<const PhysicalAccess> accessors() const { return accessors_; }
  // Lets this device use memory of another, once. The caller has made this device's context current.
  Result EnablePeer(Device& peer);

  // Makes the primary context current in this thread while f() runs. f returns a Result. If it says that the device is lost,
  // the device stays lost.
  template <typename F>
  Result With(F&& f) {
    if (lost_) return Health();
    if (Result r = Call(TheDriver().context_push, context_); !r.ok()) return Keep(std::move(r));
    const Popped popped;
    Result result = f();
    return result.ok() ? result : Keep(std::move(result));
  }
  // The same for what cannot fail, such as releasing objects: also on a lost device.
  template <typename F>
  void Always(F&& f) {
    if (TheDriver().context_push.call(context_) != kDriverOk) return f();
    const Popped popped;
    f();
  }

 private:
  // Restores the thread's context when it is destroyed.
  struct Popped {
    ~Popped() {
      void* context = nullptr;
      TheDriver().context_pop.call(&context);
    }
  };
  void FindAccessors();
  Result Keep(Result r);  // remembers a loss; adds the device's name to the text

  const int ordinal_;
  const std::string name_;
  void* context_ = nullptr;
  uint64_t granularity_ = 0;
  Roofs roofs_ = kAverageRoofs;
  std::vector<PhysicalAccess> accessors_;
  LoadedImages images_{*this};
  CompiledKernels compiled_;
  EventPool events_;
  std::mutex mutex_;
  std::set<int> peers_;  // guarded by mutex_
  std::string loss_;     // guarded by mutex_
  std::atomic<bool> lost_{false};
};

}  // namespace mge::gpu
