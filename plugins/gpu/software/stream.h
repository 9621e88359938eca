// SPDX-License-Identifier: Apache-2.0
// Stream: a thread that runs enqueued work in order.
//
// Failures: after work fails, later work on the stream is skipped, and its later signals carry the failure. Other streams
// that wait for such a signal work on, like those of a real device: the host passes the failure on. A kernel that finds a
// fault in its data sets the stream's fault word. Later work runs, and each later signal carries a copy of the word, which
// the host's wait checks. A stream that has failed never works again.
//
// Capture: between BeginCapture and EndCapture, copies, fills and launches go into a Record instead of the queue. Replay
// enqueues one task that runs the record's tasks in order. A record keeps the arguments as they were; it belongs to its
// device.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugins/gpu/emulation/emulator.h"
#include "plugins/gpu/launch.h"
#include "plugins/gpu/software/device.h"
#include "plugins/gpu/software/event.h"
#include "plugins/gpu/software/task.h"

namespace mge::software {

// The queue of one thread. Every function enqueues and returns. Work that is refused is not enqueued. One thread at a time
// may call it.
class Stream {
 public:
  enum class Kind { kCompute, kCopyIn, kCopyOut, kCommunication };

  Stream(SoftwareDevice& device, Kind kind);
  // Waits for enqueued work, but not for simulated delays. An operation of this stream that hangs fails with MGE_CANCELLED.
  // A wait for an event of another stream that hangs ends only when that stream is destroyed.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  SoftwareDevice& device() { return device_; }

  // Copies between memory of the device and of the host, or within the device. Host memory must be valid until the copy is
  // done.
  Result Copy(void* destination, const void* source, uint64_t bytes);
  // Copies between two devices linked as peers. The stream must belong to one of them.
  Result CopyPeer(SoftwareDevice& to, void* destination, SoftwareDevice& from, const void* source, uint64_t bytes);
  Result Fill(void* destination, int byte, uint64_t bytes);
  Result Launch(const gpu::Launch& launch);  // compute streams only
  // Calls work->Run() in the stream's thread. Both addresses are memory of the device. Cannot be captured.
  Result Call(std::shared_ptr<HostWork> work, const HostWorkCall& call);
  // Returns the fault word of this stream: where its kernels report faults in their data.
  gpu::Fault* kernel_fault() { return kernel_fault_.get(); }

  // Makes the next copy, fill or launch fail with that code and text, without doing anything.
  void FailNext(mge_code code, std::string text);

  Result Signal(std::shared_ptr<Event> event, uint64_t value);
  Result Wait(std::shared_ptr<Event> event, uint64_t value);  // fails if no signal of the value has been enqueued
  Result Mark(std::shared_ptr<Stamp> stamp);

  // Records copies, fills and launches instead of running them, until EndCapture(). Anything else is refused meanwhile.
  Result BeginCapture();
  Result EndCapture(std::shared_ptr<const Record>* out);
  // Enqueues a record. It must have been captured on the same device.
  Result Replay(std::shared_ptr<const Record> record);

 private:
  template <typename F>
  Result Push(Task::Kind kind, F&& fill);
  Result CheckEnd(SoftwareDevice* owner, const void* address, uint64_t bytes, const char* what) const;

  // The functions below run on the stream's thread.
  void Work();
  void Run(const Task& task);  // if host memory runs out, the task fails
  void RunOrThrow(const Task& task);
  FailurePtr Attempt(const Task& task);
  Result Move(const Task& task);
  Result Compute(const Task& task);
  Result RunHostWork(const Task& task);
  Result RunBlocks(const gpu::Launch& launch);
  void RunPart(const gpu::Launch& launch, uint64_t first, uint64_t count);  // runs a part of the blocks. [any]
  void SleepUntil(Clock::time_point end);  // returns early once the stream is being destroyed
  FailurePtr Hang();                       // returns once the stream is being destroyed

  SoftwareDevice& device_;
  const Kind kind_;
  const std::shared_ptr<gpu::Fault> kernel_fault_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Task>> ring_;  // count_ tasks from head_ on; the first one is running
  size_t head_ = 0, count_ = 0;
  std::unique_ptr<Record> capture_;
  FailurePtr fail_next_;
  FailurePtr no_memory_;  // allocated in advance for a task that finds no host memory; Push() renews it
  bool stop_ = false;

  // State of the running launch, which several threads may execute.
  struct Multiprocessor {
    std::thread::id last;  // an emulator's fibers belong to one thread; for another they are created again
    bool busy = false;
    std::unique_ptr<gpu::Emulator> emulator;
  };
  std::mutex multiprocessors_mutex_;
  std::vector<std::unique_ptr<Multiprocessor>> multiprocessors_;
  std::string launch_error_;
  bool launch_lacked_memory_ = false;

  // Used only by the stream's thread.
  FailurePtr failure_;
  std::vector<Task::ArgsBlock> args_;
  std::vector<Pin> pins_;

  std::thread thread_;
};

}  // namespace mge::software
