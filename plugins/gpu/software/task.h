// SPDX-License-Identifier: Apache-2.0
// Task: one entry of a stream. Record: several tasks, to be replayed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/gpu/launch.h"
#include "plugins/gpu/software/event.h"
#include "plugins/gpu/software/host_work.h"

namespace mge::software {

class SoftwareDevice;
struct Record;

// A point in time on a stream, in ticks of Clock; zero until it is reached.
using Stamp = std::atomic<Clock::rep>;

// An entry of a stream. Which members are valid depends on `kind`.
struct Task {
  enum class Kind : uint8_t { kNone, kCopy, kFill, kLaunch, kSignal, kWait, kMark, kReplay, kHostWork };
  struct alignas(16) ArgsBlock {
    uint64_t words[2];
  };

  Kind kind = Kind::kNone;
  // kCopy, kFill: the devices that own the two ends; null: the host.
  SoftwareDevice* to = nullptr;
  SoftwareDevice* from = nullptr;
  void* destination = nullptr;
  const void* source = nullptr;
  uint64_t bytes = 0;
  int byte = 0;
  // kLaunch: the arguments are in `args`, with tagged device addresses.
  gpu::Launch launch = {};
  std::vector<ArgsBlock> args = {};
  std::shared_ptr<gpu::Fault> kernel_fault = nullptr;
  FailurePtr demanded = nullptr;  // the failure that was requested with FailNext()
  // kSignal, kWait
  std::shared_ptr<Event> event = nullptr;
  uint64_t value = 0;
  std::shared_ptr<Stamp> stamp = nullptr;          // kMark
  std::shared_ptr<const Record> record = nullptr;  // kReplay
  // kHostWork: called with `destination`, `source` and `bytes`
  std::shared_ptr<HostWork> work = nullptr;

  // Releases all references but keeps the memory of `args`, so that a reused task does not allocate.
  void Clear() {
    kind = Kind::kNone;
    kernel_fault = nullptr;
    demanded = nullptr;
    event = nullptr;
    stamp = nullptr;
    record = nullptr;
    work = nullptr;
  }
};

// Captured tasks, to be replayed on their device.
struct Record {
  SoftwareDevice* device = nullptr;
  std::vector<Task> tasks;
};

}  // namespace mge::software
