// SPDX-License-Identifier: Apache-2.0
// A backend for the tests of the engine, with queues that are threads, fences, stamps, capture and links.
//
// The host cannot access device memory: its addresses are shifted out of the address space. Devices 0 and 1 are linked,
// device 2 is not. MatMul runs on all devices except device 1. Mul runs on device 1 only.
#include "async.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mge/plugin.hpp"

namespace {

mge_async_control g_control;
std::atomic<int64_t> g_at_work{0};

// Addresses of device d's memory are shifted by (d + 1) * kFar. No machine can access addresses of 2^48 or more.
constexpr uint64_t kFar = uint64_t{1} << 48;

struct Device {
  static mge::Result List(mge::DeviceList& list) {
    for (int i = 0; i < 3; ++i) {
      list.Add({.name = "asynchronous test device " + std::to_string(i), .flags = MGE_DEVICE_ONLY_BY_NAME});
    }
    return {};
  }
  explicit Device(uint32_t index) : index(index) {}
  mge::Result Health() { return g_control.lost ? mge::Result(MGE_DEVICE_LOST, "the test pulled the card") : mge::Result(); }
  mge::Result Link(Device& to, mge::LinkInfo* out) {
    if (index < 2 && to.index < 2) *out = {.peer = true, .bandwidth_gb_s = 50, .latency_us = 2, .name = "test link"};
    return {};
  }
  char* Real(const void* address) const {
    auto value = reinterpret_cast<uint64_t>(address);
    if (value < kFar) return reinterpret_cast<char*>(value);  // host memory
    if (value / kFar != index + 1) g_control.wrong_memory += 1;
    return reinterpret_cast<char*>(value % kFar);
  }
  uint32_t index;
};

struct Memory {
  static mge::Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out) {
    if (mge::Result r = mge::HostMemory::Acquire(device, memory_class, bytes, out); !r.ok()) return r;
    if (memory_class == MGE_MEMORY_PINNED) return {};
    std::memset(out->address, 0xee, bytes);
    out->host_address = nullptr;
    out->address = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(out->address) + (device.index + 1) * kFar);
    return {};
  }
  static void Release(Device&, const mge_slab& slab) {
    std::free(reinterpret_cast<void*>(reinterpret_cast<uint64_t>(slab.address) % kFar));
  }
  static mge::MemoryAmount Info(Device&) { return {1 << 30, 1 << 30}; }
};

class Fence {
 public:
  explicit Fence(Device&) { g_control.fences += 1; }
  ~Fence() { g_control.fences -= 1; }
  void Reach(uint64_t value, const mge::Result& failure) {
    std::lock_guard lock(mutex_);
    if (failure.ok()) {
      value_ = std::max(value_, value);
    } else if (failure_.ok()) {
      failure_ = failure;
    }
    changed_.notify_all();
  }
  // Records that a signal of `value` has been enqueued.
  void Promise(uint64_t value) {
    std::lock_guard lock(mutex_);
    promised_ = std::max(promised_, value);
  }
  // Counts waits that come before their signal, which a real device does not wait for.
  bool Promised(uint64_t value) {
    std::lock_guard lock(mutex_);
    if (promised_ < value) g_control.early_waits += 1;
    return promised_ >= value;
  }
  // Blocks a queue's thread until `value` is reached or failed. A failure does not stop the queue.
  mge::Result QueueWait(uint64_t value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return value_ >= value || !failure_.ok(); });
    return {};
  }
  mge::Result HostWait(uint64_t value, uint64_t timeout_ns) {
    if (!Promised(value)) return {};
    if (g_control.wait_us) std::this_thread::sleep_for(std::chrono::microseconds(g_control.wait_us));
    std::unique_lock lock(mutex_);
    auto over = [&] { return value_ >= value || !failure_.ok(); };
    auto timeout = std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, 3'600'000'000'000));
    if (!changed_.wait_for(lock, timeout, over)) return {MGE_DEADLINE_EXCEEDED, "not yet"};
    return value_ >= value ? mge::Result() : failure_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_ = 0, promised_ = 0;
  mge::Result failure_;
};

using Task = std::function<mge::Result()>;

struct Hanging {
  Hanging() { g_control.hanging += 1; }
  ~Hanging() { g_control.hanging -= 1; }
};

struct Record {
  Record() { g_control.records += 1; }
  ~Record() { g_control.records -= 1; }
  std::vector<Task> tasks;
};

class Queue {
 public:
  Queue(Device& device, int32_t kind) : device(device), kind_(kind), thread_([this] { Work(); }) { g_control.queues += 1; }
  ~Queue() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    thread_.join();
    g_control.queues -= 1;
  }
  mge::Result Copy(void* to, const void* from, uint64_t bytes) {
    (kind_ == MGE_QUEUE_COPY_OUT ? g_control.copies_out : g_control.copies_in) += 1;
    if (kind_ != MGE_QUEUE_COPY_OUT) g_control.copied_bytes_in += static_cast<int64_t>(bytes);
    return Move(device.Real(to), device.Real(from), bytes);
  }
  mge::Result CopyPeer(Device& to, void* destination, Device& from, const void* source, uint64_t bytes) {
    g_control.peer_copies += 1;
    return Move(to.Real(destination), from.Real(source), bytes);
  }
  mge::Result Signal(Fence& fence, uint64_t value) {
    if (!g_control.lost) fence.Promise(value);
    return Enqueue(
        [this, &fence, value] {
          fence.Reach(value, failure_);
          return mge::Result();
        },
        true);
  }
  mge::Result Wait(Fence& fence, uint64_t value) {
    if (!fence.Promised(value)) return {};
    return Enqueue([&fence, value] { return fence.QueueWait(value); });
  }
  mge::Result CaptureBegin() {
    record_ = new Record;
    return {};
  }
  mge::Result CaptureEnd(Record** out) {
    g_control.captures += 1;
    *out = std::exchange(record_, nullptr);
    return {};
  }
  mge::Result Replay(Record& record) {
    g_control.replays += 1;
    return Enqueue([this, &record] {
      for (Task& task : record.tasks) {
        if (mge::Result r = task(); !r.ok()) return r;
      }
      return mge::Result();
    });
  }
  // Adds a task to the queue. With `always`, the task runs even after a failure of the queue.
  mge::Result Enqueue(Task task, bool always = false) {
    if (g_control.lost) return {MGE_DEVICE_LOST, "the test pulled the card"};
    if (record_) {
      record_->tasks.push_back(std::move(task));
      return {};
    }
    std::lock_guard lock(mutex_);
    tasks_.push_back({std::move(task), always});
    changed_.notify_all();
    return {};
  }

  Device& device;

 private:
  struct Entry {
    Task task;
    bool always;
  };

  mge::Result Move(char* to, const char* from, uint64_t bytes) {
    return Enqueue([=] {
      if (g_control.good_copies.fetch_sub(1) <= 0) {
        Hanging now;
        while (g_control.good_copies <= 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      Busy(g_control.copy_us);
      std::memmove(to, from, bytes);
      return mge::Result();
    });
  }

 public:
  static void Busy(int64_t us) {
    int64_t now = ++g_at_work, most = g_control.most_at_once;
    while (now > most && !g_control.most_at_once.compare_exchange_weak(most, now)) {
    }
    if (us) std::this_thread::sleep_for(std::chrono::microseconds(us));
    --g_at_work;
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ended_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      Entry entry = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      if (failure_.ok() || entry.always) {
        if (mge::Result r = entry.task(); !r.ok() && failure_.ok()) failure_ = r;
      }
      lock.lock();
    }
  }

  int32_t kind_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> tasks_;
  Record* record_ = nullptr;
  mge::Result failure_;  // first failure of this queue; later tasks are skipped, and fences receive it
  bool ended_ = false;
  std::thread thread_;
};

class Stamp {
 public:
  explicit Stamp(Device&) {}
  mge::Result Take(Queue& queue) {
    return queue.Enqueue([this] {
      at_ = std::chrono::steady_clock::now();
      return mge::Result();
    });
  }
  static mge::Result ElapsedUs(Stamp& from, Stamp& to, double* out) {
    *out = std::chrono::duration<double, std::micro>(to.at_ - from.at_).count();
    return {};
  }

 private:
  std::chrono::steady_clock::time_point at_;
};

// Enqueues f as a kernel of the device.
template <typename F>
mge_code Launch(const mge_run* run, F f) {
  const int32_t* cancel = run->cancel;
  return mge::Report(run->error, mge::QueueOf<Queue>(run).Enqueue([=]() -> mge::Result {
    if (g_control.lost) return {MGE_DEVICE_LOST, "the test pulled the card"};
    if (g_control.kernel_fails.exchange(false)) return {MGE_INTERNAL, "the test broke a kernel"};
    std::optional<Hanging> now;
    while (g_control.hangs) {
      if (!now) now.emplace();
      if (!g_control.stubborn && __atomic_load_n(cancel, __ATOMIC_RELAXED)) return {MGE_CANCELLED, "told to stop"};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Queue::Busy(g_control.kernel_us);
    g_control.kernels += 1;
    f();
    return {};
  }));
}

const char* WhyNot(const mge::Problem& p) {
  if (p.node_count() != 1) return "only one node at a time";
  for (int i = 0; i < p.input_count(); ++i) {
    if (p.input(i).dtype() != MGE_DTYPE_F32) return "only float32";
  }
  return p.is_static() ? nullptr : "only shapes that are known before the run";
}

constexpr uint64_t kAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_CAPTURE_SAFE;

struct Relu {
  static constexpr const char* kOp = "Relu";
  static constexpr const char* kId = "async.relu";
  static constexpr uint64_t kAttributes = ::kAttributes;
  static mge::Support Supports(const mge::Problem& p) { return WhyNot(p) ? mge::No(WhyNot(p)) : mge::Yes(); }
  static void Describe(const mge::Problem&, mge::Candidate& c) {
    c.cost_us = 10;
    c.in_place = {{0, 0}};
  }
  explicit Relu(const mge::Problem& p) : count(p.input(0).elements()) {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    Device& d = mge::QueueOf<Queue>(run).device;
    auto* from = reinterpret_cast<const float*>(d.Real(mge::At<char>(run, x)));
    auto* to = reinterpret_cast<float*>(d.Real(mge::At<char>(run, y)));
    return ::Launch(run, [=, n = count] {
      for (uint64_t i = 0; i < n; ++i) to[i] = std::max(from[i], 0.0f);
      if (g_control.overruns) std::memset(to + n, 0, 1);
    });
  }
  uint64_t count;
  mge::Slot x, y;
};

// A kernel of Add or Mul for operands of equal shapes.
template <bool kMul>
struct Binary {
  static constexpr const char* kOp = kMul ? "Mul" : "Add";
  static constexpr const char* kId = kMul ? "async.mul" : "async.add";
  static constexpr uint64_t kAttributes = ::kAttributes;
  static mge::Support Supports(const mge::Problem& p) {
    if (WhyNot(p)) return mge::No(WhyNot(p));
    bool equal = p.input_count() == 2 && p.input(0).elements() == p.output(0).elements() &&
                 p.input(1).elements() == p.output(0).elements();
    return equal ? mge::Yes() : mge::No("only equal shapes");
  }
  static void Describe(const mge::Problem&, mge::Candidate& c) { c.cost_us = 10; }
  explicit Binary(const mge::Problem& p) : count(p.output(0).elements()) {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.input(1), z = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    Device& d = mge::QueueOf<Queue>(run).device;
    auto* a = reinterpret_cast<const float*>(d.Real(mge::At<char>(run, x)));
    auto* b = reinterpret_cast<const float*>(d.Real(mge::At<char>(run, y)));
    auto* to = reinterpret_cast<float*>(d.Real(mge::At<char>(run, z)));
    return ::Launch(run, [=, n = count] {
      for (uint64_t i = 0; i < n; ++i) to[i] = kMul ? a[i] * b[i] : a[i] + b[i];
    });
  }
  uint64_t count;
  mge::Slot x, y, z;
};

// A product of two matrices. A constant second operand is packed by columns. The workspace holds one row of the result.
struct MatMul {
  static constexpr const char* kOp = "MatMul";
  static constexpr const char* kId = "async.matmul";
  static constexpr uint64_t kAttributes = ::kAttributes;
  static mge::Support Supports(const mge::Problem& p) {
    if (WhyNot(p)) return mge::No(WhyNot(p));
    return p.input_count() == 2 && p.input(0).rank() == 2 && p.input(1).rank() == 2 ? mge::Yes() : mge::No("only matrices");
  }
  static void Describe(const mge::Problem& p, mge::Candidate& c) {
    c.cost_us = 20;
    c.workspace = static_cast<uint64_t>(p.input(1).dim(1)) * sizeof(float);
  }
  explicit MatMul(const mge::Problem& p)
      : rows(p.input(0).dim(0)), inner(p.input(0).dim(1)), columns(p.input(1).dim(1)), packed(p.input(1).is_constant()) {}
  uint64_t prepack_bytes(int input) const {
    return input == 1 && packed ? static_cast<uint64_t>(inner * columns) * sizeof(float) : 0;
  }
  std::string prepack_form(int) const { return "columns " + std::to_string(inner) + "x" + std::to_string(columns); }
  mge::Result Prepack(int, const void* from, void* to) const {
    ++g_control.packed;
    Pack(static_cast<const float*>(from), static_cast<float*>(to));
    return {};
  }
  mge::Result PrepackOn(int, mge_queue* handle, const void* from, void* to) const {
    if (g_control.packs_on_host) return {MGE_UNIMPLEMENTED, "the test made it so"};
    auto& queue = mge::QueueOf<Queue>(handle);
    auto* x = reinterpret_cast<const float*>(queue.device.Real(from));
    auto* y = reinterpret_cast<float*>(queue.device.Real(to));
    return queue.Enqueue([=, m = *this]() -> mge::Result {
      ++g_control.packed_on_queue;
      m.Pack(x, y);
      return {};
    });
  }
  void Pack(const float* from, float* to) const {
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t j = 0; j < columns; ++j) to[j * inner + i] = from[i * columns + j];
    }
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.input(1), z = b.output(0), w = b.workspace(); }
  mge_code Launch(const mge_run* run) const {
    Device& d = mge::QueueOf<Queue>(run).device;
    auto at = [&](const mge::Slot& s) { return reinterpret_cast<float*>(d.Real(mge::At<char>(run, s))); };
    const float *a = at(x), *b = at(y);
    float *to = at(z), *row = at(w);
    return ::Launch(run, [=, m = *this] {
      for (int64_t i = 0; i < m.rows; ++i) {
        for (int64_t j = 0; j < m.columns; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < m.inner; ++k) {
            sum += a[i * m.inner + k] * (m.packed ? b[j * m.inner + k] : b[k * m.columns + j]);
          }
          row[j] = sum;
        }
        std::copy(row, row + m.columns, to + i * m.columns);
      }
    });
  }
  int64_t rows, inner, columns;
  bool packed;
  mge::Slot x, y, z, w;
};

// Two kernels: the device computes the first in 5 ms; the second takes 0.2 ms there, but 10 ms to launch on the host.
struct Abs {
  static constexpr const char* kOp = "Abs";
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    if (WhyNot(p)) return offers.Refuse(WhyNot(p));
    offers.Add({.id = "async.abs.slow", .attributes = kAttributes, .cost_us = 1});
    offers.Add({.id = "async.abs.slow_to_launch", .attributes = kAttributes, .cost_us = 2, .variant = 1});
  }
  Abs(const mge::Problem& p, const mge::Candidate& c) : count(p.input(0).elements()), slow_to_launch(c.variant == 1) {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    Device& d = mge::QueueOf<Queue>(run).device;
    auto* from = reinterpret_cast<const float*>(d.Real(mge::At<char>(run, x)));
    auto* to = reinterpret_cast<float*>(d.Real(mge::At<char>(run, y)));
    if (slow_to_launch) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto takes = std::chrono::microseconds(slow_to_launch ? 200 : 5000);
    return ::Launch(run, [=, n = count] {
      std::this_thread::sleep_for(takes);
      for (uint64_t i = 0; i < n; ++i) to[i] = std::abs(from[i]);
    });
  }
  uint64_t count;
  bool slow_to_launch;
  mge::Slot x, y;
};

constexpr mge::KernelRow kAbs = mge::Row<Abs>();
constexpr mge::KernelRow kRelu = mge::Row<Relu>();
constexpr mge::KernelRow kAdd = mge::Row<Binary<false>>();
constexpr mge::KernelRow kMul = mge::Row<Binary<true>>();
constexpr mge::KernelRow kMatMul = mge::Row<MatMul>();

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "async", kVersion = "1.0";
  using Device = ::Device;
  using Memory = ::Memory;
  using Queue = ::Queue;
  using Fence = ::Fence;
  using Record = ::Record;
  using Stamp = ::Stamp;
  using Kernels = mge::Kernels<kAbs, kRelu, kAdd, kMul, kMatMul>;
  static const void* Extension(std::string_view name, uint32_t) { return name == MGE_ASYNC_CONTROL ? &g_control : nullptr; }
};

// Enumerates the kernels, but refuses those that this device lacks.
mge_code Enumerate(mge_device* device, const mge_problem* problem, const mge_constraints* constraints,
                   const mge_candidate_sink* sink, mge_error* error) {
  uint32_t index = mge::internal::As<Device>(device).index;
  std::string_view op = mge::View(problem->graph->nodes[0]->op);
  if ((op == "MatMul" && index == 1) || (op == "Mul" && index != 1)) {
    mge_text kernel = mge::Text(op), reason = mge::Text("this device lacks it");
    sink->refuse(sink->self, &kernel, &reason);
    return MGE_OK;
  }
  return mge::internal::Tables<Backend>::kKernel.enumerate(device, problem, constraints, sink, error);
}

constexpr mge_kernel_api kKernels = [] {
  mge_kernel_api api = mge::internal::Tables<Backend>::kKernel;
  api.enumerate = Enumerate;
  return api;
}();
// Describes a link with additional flags, as a newer backend might.
mge_code LinkOf(mge_device* from, mge_device* to, mge_link* out, mge_error* error) {
  mge_code code = mge::internal::Tables<Backend>::kDevice.link(from, to, out, error);
  out->flags |= g_control.link_flags;
  return code;
}
constexpr mge_device_api kDevices = [] {
  mge_device_api api = mge::internal::Tables<Backend>::kDevice;
  api.link = LinkOf;
  return api;
}();
constexpr mge_plugin kPlugin = [] {
  mge_plugin plugin = mge::internal::Tables<Backend>::kPlugin;
  plugin.device = &kDevices;
  plugin.kernel = &kKernels;
  return plugin;
}();

}  // namespace

MGE_PLUGIN_ENTRY(kPlugin)
MGE_BACKEND_NOTE(Backend);
