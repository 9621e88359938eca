// SPDX-License-Identifier: Apache-2.0
// A stream of the driver, graphs captured from it, and points in time on it.
#pragma once

#include <cstdint>
#include <memory>

#include "plugins/gpu/launch.h"
#include "plugins/gpu/runtime/device.h"
#include "plugins/gpu/runtime/fence.h"

namespace mge::gpu {

// An executable graph.
class Graph {
 public:
  Graph(Device& device, void* executable, bool faults) : device_(device), executable_(executable), faults_(faults) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void* executable() const { return executable_; }
  bool faults() const { return faults_; }  // its kernels may report faults

 private:
  Device& device_;
  void* const executable_;
  const bool faults_;
};

class Stamp;

class Queue {
 public:
  Queue(Device& device, int32_t kind) : device_(device), kind_(kind) {}
  Result Init();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Result Copy(void* to, const void* from, uint64_t bytes);
  Result CopyPeer(Device& to, void* destination, Device& from, const void* source, uint64_t bytes);
  Result Fill(void* to, int byte, uint64_t bytes);
  Result Launch(const gpu::Launch& launch);
  // Calls f(stream), which enqueues work of another library on the driver's stream, and returns a Result.
  template <typename F>
  Result Enqueue(F&& f) {
    return device_.With([&] { return f(stream_); });
  }
  Result Signal(Fence& fence, uint64_t value);
  Result Wait(Fence& fence, uint64_t value);
  Result CaptureBegin();
  Result CaptureEnd(Graph** out);
  Result CaptureUpdate(Graph& graph);
  Result Replay(Graph& graph);
  Result Mark(void* event);
  // Returns the fault word of this queue. From now on, signals copy it.
  Fault* FaultWord();
  // Called when collective operations were enqueued. Waits for later signals look at them.
  void Watch(std::shared_ptr<CollectiveWatch> watch);
  bool capturing() const { return capturing_; }

 private:
  // Ends the capture. Calls use(graph) and then destroys the graph.
  template <typename F>
  Result EndCapture(F&& use);

  Device& device_;
  const int32_t kind_;
  void* stream_ = nullptr;
  void* fault_word_ = nullptr;  // device memory; compute queues only
  bool faults_ = false;         // a kernel that was enqueued may have reported a fault
  bool capturing_ = false, captured_faults_ = false;
  std::shared_ptr<CollectiveWatch> watch_;  // of collective operations; null: none
};

// A point in time on a queue.
class Stamp {
 public:
  explicit Stamp(Device& device) : device_(device) {}
  Result Init();
  ~Stamp();
  Stamp(const Stamp&) = delete;
  Stamp& operator=(const Stamp&) = delete;
  Result Take(Queue& queue) { return queue.Mark(event_); }
  static Result ElapsedUs(Stamp& from, Stamp& to, double* out);

 private:
  Device& device_;
  void* event_ = nullptr;
};

}  // namespace mge::gpu
