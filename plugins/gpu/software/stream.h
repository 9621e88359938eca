// SPDX-License-Identifier: Apache-2.0
// Stream: a thread that runs enqueued work in order.
//
// Failures: after work fails, later work on the stream is skipped, and events that the stream would have signalled carry the
// failure. A stream that waits for such an event fails too. The failure ends when a host thread has received it (its wait
// for an event returned the failure): work enqueued later runs again. A lost device never recovers.
//
// Capture: between BeginCapture and EndCapture, copies, fills and launches go into a Record instead of the queue. Replay
// enqueues one task that runs the record's tasks in order. A record keeps the arguments as they were; it belongs to its
// device.
#pragma once

#include <atomic>
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
  enum class Kind { kCompute, kCopyIn, kCopyOut };

  Stream(SoftwareDevice& device, Kind kind);
  // Waits for enqueued work, but not for simulated delays. Work that can never end (an operation that hangs, a wait for an
  // event that no stream will signal) fails with MGE_CANCELLED, and so does the work after it. stream_end.cc decides that.
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
  // Returns where kernels of this stream report faults in their data.
  gpu::Fault* kernel_fault() { return kernel_fault_.get(); }

  // Makes the next copy, fill or launch fail with that code and text, without doing anything.
  void FailNext(mge_code code, std::string text);

  Result Signal(std::shared_ptr<Event> event, uint64_t value);
  Result Wait(std::shared_ptr<Event> event, uint64_t value);
  Result Mark(std::shared_ptr<Stamp> stamp);

  // Records copies, fills and launches instead of running them, until EndCapture(). Anything else is refused meanwhile.
  Result BeginCapture();
  Result EndCapture(std::shared_ptr<const Record>* out);
  // Enqueues a record. It must have been captured on the same device.
  Result Replay(std::shared_ptr<const Record> record);

  // Makes the stream's pending signals visible to other streams while it exists.
  struct Listing {
    explicit Listing(Stream& listed);
    ~Listing();
    Stream& stream;
    Listing* next;
  };

 private:
  template <typename F>
  Result Push(Task::Kind kind, F&& fill);
  Result CheckEnd(SoftwareDevice* owner, const void* address, uint64_t bytes, const char* what) const;

  // The functions below run on the stream's thread.
  void Work();
  void Run(const Task& task, Clock::time_point enqueued);  // if host memory runs out, the task fails
  void RunOrThrow(const Task& task, Clock::time_point enqueued);
  FailurePtr Attempt(const Task& task);
  Result Move(const Task& task);
  Result Compute(const Task& task);
  Result RunHostWork(const Task& task);
  Result RunBlocks(const gpu::Launch& launch);
  void RunPart(const gpu::Launch& launch, uint64_t first, uint64_t count);  // runs a part of the blocks. [any]
  FailurePtr Wait(const Task& task);
  void SleepUntil(Clock::time_point end);  // returns early once the stream is being destroyed
  void Hang();                             // returns once the stream is being destroyed
  bool CanGoOn() const;                    // whether the awaited event will be signalled without further enqueues
  FailurePtr Cancelled() const;

  SoftwareDevice& device_;
  const Kind kind_;
  const std::shared_ptr<gpu::Fault> kernel_fault_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Task>> ring_;  // count_ tasks from head_ on; the first one is running
  size_t head_ = 0, count_ = 0;
  std::unique_ptr<Record> capture_;
  FailurePtr fail_next_;
  FailurePtr no_memory_;        // allocated in advance for a task that finds no host memory; Push() renews it
  Event* waits_for_ = nullptr;  // the event that the thread waits for
  bool hangs_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<bool> look_again_{false};  // the result of CanGoOn() may have changed

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

  Listing listing_{*this};

  std::thread thread_;
};

}  // namespace mge::software
