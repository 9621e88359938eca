// SPDX-License-Identifier: Apache-2.0
// Stream: a thread that does what it is given, in order.
//
// Failures. Work that fails makes what follows on the stream do nothing, and every event that the stream would have raised
// carries the failure; a stream that waits for such an event fails in turn. This ends when a host thread has been told (its
// wait for an event answered the failure): what is enqueued after that begins anew. A lost device never recovers.
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

// Every function enqueues and returns; what it refuses is not enqueued. One thread at a time.
class Stream {
 public:
  enum class Kind { kCompute, kCopyIn, kCopyOut };

  Stream(SoftwareDevice& device, Kind kind);
  // Finishes what is enqueued, without the time that is only modelled. What would never end (an operation that hangs, a
  // wait for an event that no stream has still to raise) fails with MGE_CANCELLED, and with it what follows.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  SoftwareDevice& device() { return device_; }

  // Between memory of the device and that of the host, or within the device. Host memory must live until the copy is done.
  Result Copy(void* destination, const void* source, uint64_t bytes);
  // From memory of one device to that of another; the stream belongs to one of the two, which must be linked as peers.
  Result CopyPeer(SoftwareDevice& to, void* destination, SoftwareDevice& from, const void* source, uint64_t bytes);
  Result Fill(void* destination, int byte, uint64_t bytes);
  Result Launch(const gpu::Launch& launch);  // compute streams only
  // Where kernels of this stream report what is wrong with their data.
  gpu::Fault* kernel_fault() { return kernel_fault_.get(); }

  // The next copy, fill or launch that is enqueued does nothing and fails so.
  void FailNext(mge_code code, std::string text);

  Result Signal(std::shared_ptr<Event> event, uint64_t value);
  Result Wait(std::shared_ptr<Event> event, uint64_t value);
  Result Mark(std::shared_ptr<Stamp> stamp);

  // Between the two, copies, fills and launches are recorded instead of run; anything else is refused.
  Result BeginCapture();
  Result EndCapture(std::shared_ptr<const Record>* out);
  // On the device that it was recorded on.
  Result Replay(std::shared_ptr<const Record> record);

  // While it lives, other streams see what this one has still to raise.
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

  // The rest runs on the stream's thread.
  void Work();
  void Run(const Task& task, Clock::time_point enqueued);  // without host memory the task fails
  void RunOrThrow(const Task& task, Clock::time_point enqueued);
  FailurePtr Attempt(const Task& task);
  Result Move(const Task& task);
  Result Compute(const Task& task);
  Result RunBlocks(const gpu::Launch& launch);
  void RunPart(const gpu::Launch& launch, uint64_t first, uint64_t count);  // of the blocks. [any]
  FailurePtr Wait(const Task& task);
  void SleepUntil(Clock::time_point end);  // not once the stream is being destroyed
  void Hang();                             // until the stream is being destroyed
  bool CanGoOn() const;                    // what the thread waits for will come, if nobody enqueues any more
  FailurePtr Cancelled() const;

  SoftwareDevice& device_;
  const Kind kind_;
  const std::shared_ptr<gpu::Fault> kernel_fault_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Task>> ring_;  // count_ tasks from head_ on; the first is the one that runs
  size_t head_ = 0, count_ = 0;
  std::unique_ptr<Record> capture_;
  FailurePtr fail_next_;
  FailurePtr no_memory_;  // a fresh one for the task that finds no host memory; whoever enqueues sees to it
  Event* waits_for_ = nullptr;  // what the thread blocks on
  bool hangs_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<bool> look_again_{false};  // whether a wait can end may have changed

  // Of the launch that runs: several threads may take part.
  struct Multiprocessor {
    std::thread::id last;  // its fibers serve one thread; they are made anew for another
    bool busy = false;
    std::unique_ptr<gpu::Emulator> emulator;
  };
  std::mutex multiprocessors_mutex_;
  std::vector<std::unique_ptr<Multiprocessor>> multiprocessors_;
  std::string launch_error_;
  bool launch_lacked_memory_ = false;

  // The thread's own.
  FailurePtr failure_;
  std::vector<Task::ArgsBlock> args_;
  std::vector<Pin> pins_;

  Listing listing_{*this};

  std::thread thread_;
};

}  // namespace mge::software
