// SPDX-License-Identifier: Apache-2.0
// SoftwareDevice: a GPU that exists in software. Its memory cannot be touched by the host (address.h), its streams are
// threads (stream.h), its kernels are those of plugins/gpu, run by the emulator, and what it does wrong is on demand
// (faults.h).
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

// Threads that help with a kernel: runs body(context, i) for every i < chunks and returns when all are done. [any]
struct Helpers {
  uint32_t width = 1;
  void (*parallel_for)(void* self, uint64_t chunks, void (*body)(void* context, uint64_t chunk), void* context) = nullptr;
  void* self = nullptr;
};

struct DeviceOptions {
  int number = 0;
  std::string name;                  // for messages: "virtual0"
  uint64_t memory_bytes = 1 << 30;
  bool poison = false;               // new memory holds NaN
  double bandwidth_gb_s = 0;         // of the way to the host, each direction, unless `links` says it; 0: as fast as memory
  double latency_us = 0;             // of a copy on it
  double launch_latency_us = 0;      // from a kernel's turn on its stream to its begin
  std::vector<FaultRule> faults = {};  // of all devices
  LinkMatrix links = {};             // without rows: all devices are peers at the speed of memory
  gpu::EmulatorSettings emulator = {};
  Helpers helpers = {};              // none: the stream's thread runs all blocks
};

// A way that copies share: they follow one another on it.
class Channel {
 public:
  // Takes the way for so long, from `begin` or from when it is free; answers when that ends. [any]
  Clock::time_point Occupy(Clock::time_point begin, Clock::duration duration);

 private:
  std::mutex mutex_;
  Clock::time_point free_at_;
};

// [any], but for the destructor: streams are gone by then, and nothing names its memory.
class SoftwareDevice {
 public:
  explicit SoftwareDevice(DeviceOptions options);
  SoftwareDevice(const SoftwareDevice&) = delete;
  SoftwareDevice& operator=(const SoftwareDevice&) = delete;

  const DeviceOptions& options() const { return options_; }
  const std::string& name() const { return options_.name; }

  // Counts an allocation of any memory, and fails it if a fault says so. Allocate() and Commit() do.
  Result CountAllocation();
  Result Allocate(uint64_t bytes, void** out);
  Result Commit(const void* range, uint64_t offset, uint64_t bytes);
  Memory& memory() { return memory_; }
  Faults& faults() { return faults_; }

  std::shared_ptr<Event> MakeEvent();

  // Null, or why it is lost. A lost device fails everything from then on, events that were made before among it.
  FailurePtr lost() const;
  Result Health() const;  // the same as a result
  FailurePtr Lose(std::string_view why);

  // The way from this device to another of the same machine; lives as long as this device.
  const Link& LinkTo(const SoftwareDevice& to) const;
  // How long a copy of so many bytes takes at least.
  static Clock::duration Duration(uint64_t bytes, double bandwidth_gb_s, double latency_us);
  Channel& from_host() { return from_host_; }
  Channel& to_host() { return to_host_; }
  Channel& from_peer(int number);  // one for each direction of each pair

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
