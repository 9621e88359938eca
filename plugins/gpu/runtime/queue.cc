// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/queue.h"

#include <utility>

namespace mge::gpu {
namespace {

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING: no order with the legacy stream of the application
// CU_STREAM_CAPTURE_MODE_RELAXED: an image may be loaded during a capture, in which its first kernel is launched.
constexpr int kRelaxed = 2;
constexpr int kAnyDirection = 4;  // hipMemcpyDefault

int CopyCode(void* to, const void* from, size_t bytes, void* stream) {
  const Driver& d = TheDriver();
  return TheVendor().is_hip ? d.hip_copy.call(to, from, bytes, kAnyDirection, stream)
                            : d.cuda_copy.call(to, from, bytes, stream);
}
const char* CopyName() { return TheVendor().is_hip ? TheDriver().hip_copy.name : TheDriver().cuda_copy.name; }

}  // namespace

Graph::~Graph() {
  device_.Always([this] { TheDriver().executable_destroy.call(executable_); });
}

Result Queue::Init() {
  return device_.With([&]() -> Result {
    const Driver& d = TheDriver();
    if (Result r = Call(d.stream_create, &stream_, kNonBlocking); !r.ok()) {
      stream_ = nullptr;
      return r;
    }
    if (kind_ != MGE_QUEUE_COMPUTE) return {};
    if (Result r = Call(d.allocate, &fault_word_, sizeof(Fault)); !r.ok()) {
      fault_word_ = nullptr;
      return r;
    }
    return Call(d.fill, fault_word_, static_cast<unsigned char>(0), sizeof(Fault), stream_);
  });
}

Queue::~Queue() {
  device_.Always([this] {
    const Driver& d = TheDriver();
    if (void* graph = nullptr; capturing_ && d.capture_end.call(stream_, &graph) == kDriverOk) d.graph_destroy.call(graph);
    if (stream_) {
      d.stream_synchronize.call(stream_);
      d.stream_destroy.call(stream_);
    }
    if (fault_word_) d.release.call(fault_word_);
  });
}

Result Queue::Copy(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return device_.Health();
  return device_.With([&] { return ResultOf(CopyCode(to, from, bytes, stream_), CopyName()); });
}

Result Queue::CopyPeer(Device& to, void* destination, Device& from, const void* source, uint64_t bytes) {
  if (Result r = to.Health(); !r.ok()) return r;
  if (Result r = from.Health(); !r.ok()) return r;
  if (bytes == 0) return device_.Health();
  Device& other = &to == &device_ ? from : to;
  return device_.With([&]() -> Result {
    if (&other != &device_) {
      if (Result r = device_.EnablePeer(other); !r.ok()) return r;
    }
    const Driver& d = TheDriver();
    return TheVendor().is_hip ? Call(d.hip_copy_peer, destination, to.ordinal(), source, from.ordinal(), bytes, stream_)
                              : Call(d.cuda_copy_peer, destination, to.context(), source, from.context(), bytes, stream_);
  });
}

Result Queue::Fill(void* to, int byte, uint64_t bytes) {
  if (bytes == 0) return device_.Health();
  return device_.With([&] { return Call(TheDriver().fill, to, static_cast<unsigned char>(byte), bytes, stream_); });
}

Result Queue::Launch(const gpu::Launch& l) {
  if (kind_ != MGE_QUEUE_COMPUTE) return {MGE_INVALID_ARGUMENT, "a copy queue cannot run kernels"};
  return device_.With([&]() -> Result {
    void* function = l.function;
    if (!function) {
      if (Result r = device_.images().FunctionOf(l.kernel, &function); !r.ok()) return r;
    }
    void* arguments[] = {const_cast<void*>(l.args)};
    Result r = Call(TheDriver().launch, function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
                    l.shared_bytes, stream_, arguments, nullptr);
    if (r.ok()) return r;
    const std::string_view name = l.function ? "compiled at run time" : kImageKernels[l.kernel].name;
    return {r.code(), "the kernel " + std::string(name) + ": " + r.text()};
  });
}

Fault* Queue::FaultWord() {
  (capturing_ ? captured_faults_ : faults_) = true;
  return static_cast<Fault*>(fault_word_);
}

void Queue::Watch(std::shared_ptr<CollectiveWatch> watch) {
  watch->Begin();
  watch_ = std::move(watch);
}

Result Queue::Signal(Fence& fence, uint64_t value) {
  if (capturing_) return {MGE_FAILED_PRECONDITION, "a signal cannot be captured"};
  return device_.With([&] {
    return fence.Signal(value, watch_, [&](const DriverEvent& event) -> Result {
      if (faults_) {
        if (const int code = CopyCode(event.fault, fault_word_, sizeof(Fault), stream_)) return ResultOf(code, CopyName());
      }
      return Call(TheDriver().event_record, event.handle, stream_);
    });
  });
}

Result Queue::Wait(Fence& fence, uint64_t value) {
  if (capturing_) return {MGE_FAILED_PRECONDITION, "a wait cannot be captured"};
  return device_.With([&] {
    return fence.Wait(value,
                      [&](const DriverEvent& event) { return Call(TheDriver().stream_wait, stream_, event.handle, 0u); });
  });
}

Result Queue::CaptureBegin() {
  if (capturing_) return {MGE_FAILED_PRECONDITION, "the queue is already being captured"};
  Result r = device_.With([&] { return Call(TheDriver().capture_begin, stream_, kRelaxed); });
  capturing_ = r.ok();
  captured_faults_ = false;
  return r;
}

template <typename F>
Result Queue::EndCapture(F&& use) {
  if (!std::exchange(capturing_, false)) return {MGE_FAILED_PRECONDITION, "the queue is not being captured"};
  return device_.With([&]() -> Result {
    const Driver& d = TheDriver();
    void* graph = nullptr;
    if (Result r = Call(d.capture_end, stream_, &graph); !r.ok()) return r;
    Result r = use(graph);
    d.graph_destroy.call(graph);
    return r;
  });
}

Result Queue::CaptureEnd(Graph** out) {
  return EndCapture([&](void* graph) -> Result {
    void* executable = nullptr;
    if (Result r = Call(TheDriver().graph_instantiate, &executable, graph, 0ull); !r.ok()) return r;
    try {
      *out = new Graph(device_, executable, captured_faults_);
    } catch (...) {
      TheDriver().executable_destroy.call(executable);
      throw;
    }
    return {};
  });
}

Result Queue::CaptureUpdate(Graph& record) {
  return EndCapture([&](void* graph) -> Result {
    void* node = nullptr;
    int outcome[64] = {};  // newer versions of the function write a struct
    const int code = TheDriver().graph_update.call(record.executable(), graph, &node, outcome);
    if (code == kDriverUpdateFailed) return {MGE_UNIMPLEMENTED, "the captured work is not that of the record"};
    return ResultOf(code, TheDriver().graph_update.name);
  });
}

Result Queue::Replay(Graph& graph) {
  faults_ = faults_ || graph.faults();
  return device_.With([&] { return Call(TheDriver().graph_launch, graph.executable(), stream_); });
}

Result Queue::Mark(void* event) {
  if (capturing_) return {MGE_FAILED_PRECONDITION, "a stamp cannot be captured"};
  return device_.With([&] { return Call(TheDriver().event_record, event, stream_); });
}

Result Stamp::Init() {
  return device_.With([&] { return Call(TheDriver().event_create, &event_, 0u); });
}

Stamp::~Stamp() {
  if (event_) device_.Always([this] { TheDriver().event_destroy.call(event_); });
}

Result Stamp::ElapsedUs(Stamp& from, Stamp& to, double* out) {
  float ms = 0;
  const int code = TheDriver().event_elapsed.call(&ms, from.event_, to.event_);
  if (code == kDriverNotReady) return {MGE_FAILED_PRECONDITION, "a stamp was not taken yet"};
  *out = 1e3 * static_cast<double>(ms);
  return ResultOf(code, TheDriver().event_elapsed.name);
}

}  // namespace mge::gpu
