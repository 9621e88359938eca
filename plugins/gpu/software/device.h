// SPDX-License-Identifier: Apache-2.0
// SoftwareDevice: a GPU in software. The host cannot access its memory (address.h). Its streams are threads (stream.h). The
// emulator runs its kernels, those of plugins/gpu. Faults can be injected (faults.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/software/event.h"
#include "plugins/gpu/software/faults.h"
#include "plugins/gpu/software/links.h"
#include "plugins/gpu/software/memory.h"

namespace mge::software {

// Helper threads for a kernel: parallel_for calls body(context, i) for every i < chunks and returns when all are done. [any]
struct Helpers {
  uint32_t width = 1;
  void (*parallel_for)(void* self, uint64_t chunks, void (*body)(void* context, uint64_t chunk), void* context) = nullptr;
  void* self = nullptr;
};

// The properties of a device.
struct DeviceOptions {
  int number = 0;
  std::string name;  // used in messages: "virtual0"
  uint64_t memory_bytes = 1 << 30;
  bool poison = false;                 // new memory is filled with NaN
  double bandwidth_gb_s = 0;           // to and from the host, per direction, unless `links` sets it; 0: the speed of memory
  double latency_us = 0;               // latency of a copy to or from the host
  double launch_latency_us = 0;        // delay between a kernel's turn on its stream and its start
  std::vector<FaultRule> faults = {};  // rules for all devices
  LinkMatrix links = {};               // without rows: all devices are peers at the speed of memory
  gpu::EmulatorSettings emulator = {};
  Helpers helpers = {};  // none: the stream's thread runs all blocks
};

// A connection that copies share: one copy at a time uses it.
class Channel {
 public:
  // Reserves the channel for `duration`, beginning at `begin` or when it is free. Returns the end time. [any]
  Clock::time_point Occupy(Clock::time_point begin, Clock::duration duration);

 private:
  std::mutex mutex_;
  Clock::time_point free_at_;
};

// The device. Its streams must be destroyed before it. All other functions are [any].
class SoftwareDevice {
 public:
  explicit SoftwareDevice(DeviceOptions options);
  SoftwareDevice(const SoftwareDevice&) = delete;
  SoftwareDevice& operator=(const SoftwareDevice&) = delete;

  const DeviceOptions& options() const { return options_; }
  const std::string& name() const { return options_.name; }

  // Counts an allocation of any memory, and fails it if a fault rule matches. Allocate() and Commit() call it.
  Result CountAllocation();
  Result Allocate(uint64_t bytes, void** out);
  Result Commit(const void* range, uint64_t offset, uint64_t bytes);
  Memory& memory() { return memory_; }
  Faults& faults() { return faults_; }

  std::shared_ptr<Event> MakeEvent();

  // Returns null, or the reason why the device is lost. A lost device fails all later work and all events, also earlier
  // ones.
  FailurePtr lost() const;
  Result Health() const;  // the same as a result
  FailurePtr MarkLost(std::string_view why);

  // Returns the link to another device of the same machine; valid as long as this device.
  const Link& LinkTo(const SoftwareDevice& to) const;
  // Returns the minimum duration of a copy.
  static Clock::duration Duration(uint64_t bytes, double bandwidth_gb_s, double latency_us);
  Channel& from_host() { return from_host_; }
  Channel& to_host() { return to_host_; }
  Channel& from_peer(int number);  // one channel per direction of each pair

 private:
  const DeviceOptions options_;
  Memory memory_;
  Faults faults_;
  Channel from_host_, to_host_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Channel>> from_peers_;
  std::vector<std::weak_ptr<Event>> events_;
  FailurePtr lost_;
};

}  // namespace mge::software
