// SPDX-License-Identifier: Apache-2.0
// A backend for devices with a driver (toy_driver.h): asynchronous queues, memory that has handles and no addresses, compiled
// programs.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "mge/plugin.hpp"
#include "mge/plugin/blob.hpp"
#include "mge/plugin/memory_handles.hpp"
#include "mge/plugin/signals.hpp"
#include "mge/plugin/slab_numbers.hpp"
#include "toy_driver.h"

namespace {

// Returns the result of a call of the driver.
mge::Result ResultOf(toy_status status, const char* call) {
  switch (status) {
    case TOY_OK: return {};
    case TOY_NO_MEMORY: return {MGE_RESOURCE_EXHAUSTED, std::string(call) + ": the driver has no memory left"};
    default: return {MGE_INTERNAL, std::string(call) + " failed with code " + std::to_string(status)};
  }
}

class Device {
 public:
  static mge::Result List(mge::DeviceList& list) {
    for (int i = 0; i < toy_device_count(); ++i) {
      uint64_t free_bytes = 0, total_bytes = 0;
      toy_memory_info(i, &free_bytes, &total_bytes);
      list.Add({.name = "Toy " + std::to_string(i),
                .flags = MGE_DEVICE_ONLY_BY_NAME,
                .memory_total = total_bytes,
                .driver = toy_version(),
                .buffer_alignment = TOY_ALIGNMENT,
                .properties = {{"steps", std::to_string(toy_most_steps(i))}}});
    }
    return {};
  }
  explicit Device(uint32_t index) : number(static_cast<int>(index)) {}
  ~Device() {
    for (auto& [source, program] : programs_) toy_program_destroy(program);
  }
  toy_program* ProgramOf(const std::string& source);

  const int number;
  mge::SlabNumbers<toy_memory> slabs;

 private:
  std::mutex mutex_;
  std::map<std::string, toy_program*> programs_;
};

// [program]
// Returns the program for a source: of this device, from the host's cache, or from the driver's compiler.
toy_program* Device::ProgramOf(const std::string& source) {
  std::lock_guard lock(mutex_);
  toy_program*& program = programs_[source];
  if (program) return program;
  // The key has everything that the binary depends on. A version of the driver may refuse the binaries of another.
  const std::string key = std::string("toy ") + toy_version() + " " + std::to_string(toy_most_steps(number)) + " " + source;
  std::string blob;
  if (mge::LoadBlob(key, &blob) && toy_program_load(number, blob.data(), blob.size(), &program) == TOY_OK) return program;
  if (toy_program_build(number, source.c_str(), &program) != TOY_OK) throw std::runtime_error("cannot compile " + source);
  const void* binary = nullptr;
  const uint64_t bytes = toy_program_binary(program, &binary);
  mge::StoreBlob(key, {static_cast<const char*>(binary), bytes});
  return program;
}
// [program]

struct Memory {
  // [slabs]
  static mge::Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out) {
    if (memory_class == MGE_MEMORY_PINNED) return mge::HostMemory::Acquire(device, memory_class, bytes, out);
    toy_memory* memory = nullptr;
    if (toy_status s = toy_memory_create(device.number, bytes, &memory)) return ResultOf(s, "toy_memory_create");
    void* address = device.slabs.Add(memory);
    if (address) {
      *out = mge::MakeSlab(memory_class, bytes, address, nullptr, memory);
      return {};
    }
    toy_memory_destroy(memory);
    return {MGE_RESOURCE_EXHAUSTED, "the device has too many slabs"};
  }
  // [slabs]
  static void Release(Device& device, const mge_slab& slab) {
    if (slab.memory_class == MGE_MEMORY_PINNED) return mge::HostMemory::Release(device, slab);
    device.slabs.Remove(slab.address);
    toy_memory_destroy(static_cast<toy_memory*>(slab.handle));
  }
  static mge::MemoryAmount Info(Device& device) {
    mge::MemoryAmount amount;
    toy_memory_info(device.number, &amount.free_bytes, &amount.total_bytes);
    return amount;
  }
};

// [handles]
// Memory that an application has created with the driver. Its range of numbers ends with the tensor, the memory does not.
struct UserMemory {
  static mge::Result Wrap(Device& device, void* handle, uint64_t bytes, mge_slab* out) {
    auto* memory = static_cast<toy_memory*>(handle);
    if (toy_memory_device(memory) != device.number) return {MGE_INVALID_ARGUMENT, "the memory is on another device"};
    if (toy_memory_bytes(memory) < bytes) return {MGE_INVALID_ARGUMENT, "the memory has fewer bytes than that"};
    void* address = device.slabs.Add(memory);
    if (!address) return {MGE_RESOURCE_EXHAUSTED, "the device has too many slabs"};
    *out = mge::MakeSlab(MGE_MEMORY_DEVICE, bytes, address, nullptr, memory);
    return {};
  }
  static void Unwrap(Device& device, const mge_slab& slab) { device.slabs.Remove(slab.address); }
};
// [handles]

// The state of a fence. Callbacks share it: the host may destroy the fence as soon as its value is reached, while the
// callback that reached it is still running.
class Counter {
 public:
  using Event = std::shared_ptr<toy_event>;
  void Reach(uint64_t value) {
    std::lock_guard lock(mutex_);
    value_ = std::max(value_, value);
    grown_.notify_all();
  }
  bool Await(uint64_t value, uint64_t timeout_ns) {
    constexpr uint64_t kYear = UINT64_C(31'536'000'000'000'000);  // a longer time would overflow the clock
    std::unique_lock lock(mutex_);
    return grown_.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kYear)), [&] { return value_ >= value; });
  }
  // Keeps the event of a value until the value is reached.
  void Add(uint64_t value, Event event) {
    std::lock_guard lock(mutex_);
    events_.erase(events_.begin(), events_.upper_bound(value_));
    events_[value] = std::move(event);
  }
  // Returns the event after which the fence has at least this value; nullptr if it has it, or if no signal is enqueued.
  Event Find(uint64_t value, bool* reached) {
    std::lock_guard lock(mutex_);
    *reached = value_ >= value;
    auto at = events_.lower_bound(value);
    return *reached || at == events_.end() ? nullptr : at->second;
  }

 private:
  std::mutex mutex_;
  std::condition_variable grown_;
  uint64_t value_ = 0;
  std::map<uint64_t, Event> events_;
};

class Fence {
 public:
  explicit Fence(Device&) : counter(std::make_shared<Counter>()) {}
  mge::Result HostWait(uint64_t value, uint64_t timeout_ns) {
    if (counter->Await(value, timeout_ns)) return {};
    return {MGE_DEADLINE_EXCEEDED, "timed out"};  // a short text, for which std::string allocates nothing
  }
  const std::shared_ptr<Counter> counter;
};

class Queue {
 public:
  Queue(Device& device, int32_t /*kind*/) : device_(device) {}
  mge::Result Init() { return ResultOf(toy_stream_create(device_.number, &stream_), "toy_stream_create"); }
  ~Queue() {
    if (stream_) toy_stream_destroy(stream_);  // waits for its work, callbacks included
  }
  mge::Result Copy(void* to, const void* from, uint64_t bytes) {
    auto [target, target_offset] = device_.slabs.Find(to);
    auto [source, source_offset] = device_.slabs.Find(from);
    if (target && source) {
      return ResultOf(toy_copy(stream_, target, target_offset, source, source_offset, bytes), "toy_copy");
    }
    if (target) return ResultOf(toy_write(stream_, target, target_offset, from, bytes), "toy_write");
    if (source) return ResultOf(toy_read(stream_, to, source, source_offset, bytes), "toy_read");
    return {MGE_INVALID_ARGUMENT, "neither address of the copy is in the memory of this device"};
  }
  // [signal]
  mge::Result Signal(Fence& fence, uint64_t value) {
    struct Notice {
      std::shared_ptr<Counter> counter;
      uint64_t value;
    };
    auto notice = std::make_unique<Notice>(Notice{fence.counter, value});
    toy_event* event = nullptr;
    if (toy_status s = toy_record(stream_, &event)) return ResultOf(s, "toy_record");
    fence.counter->Add(value, {event, toy_event_destroy});
    // Runs in a thread of the driver. It must not call the driver, throw, or wait for anything.
    auto reached = [](void* data) {
      std::unique_ptr<Notice> now(static_cast<Notice*>(data));
      now->counter->Reach(now->value);
    };
    if (toy_status s = toy_notify(stream_, reached, notice.get())) return ResultOf(s, "toy_notify");
    (void)notice.release();  // the callback owns it
    return {};
  }
  mge::Result Wait(Fence& fence, uint64_t value) {
    bool reached = false;
    Counter::Event event = fence.counter->Find(value, &reached);
    if (reached) return {};
    if (!event) return {MGE_FAILED_PRECONDITION, "a wait was enqueued before the signal that it waits for"};
    return ResultOf(toy_wait(stream_, event.get()), "toy_wait");
  }
  // [signal]
  toy_stream* stream() const { return stream_; }

 private:
  Device& device_;
  toy_stream* stream_ = nullptr;
};

// Returns the source of the program for the group, or "" if there is none.
std::string SourceOf(const mge::Problem& p) {
  std::string source;
  for (int i = 0; i < p.node_count(); ++i) {
    const mge::Node node = p.node(i);
    for (auto [op, step] : {std::pair("Add", "add"), {"Relu", "relu"}, {"Neg", "neg"}, {"Abs", "abs"}}) {
      if (node.Is(op)) source += (i ? " " : "") + std::string(step);
    }
    if (node.Is("Add") && i > 0) return {};
  }
  return source;
}

struct Elementwise {
  // [state]
  // The driver's kernel object holds the arguments of a launch, so each instance of a plan needs one of its own.
  struct State {
    explicit State(const Elementwise& kernel) : program(kernel.program) {}
    mge::Result Init() { return ResultOf(toy_kernel_create(program, &object), "toy_kernel_create"); }
    ~State() {
      if (object) toy_kernel_destroy(object);
    }
    toy_program* program;
    toy_kernel* object = nullptr;
  };
  // [state]

  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    const std::string source = SourceOf(p);
    if (source.empty()) return offers.Refuse("only Add, Relu, Neg and Abs, and Add followed by one of the others");
    if (!p.is_static() || p.adds(0)) return offers.Refuse("only known shapes, and outputs that are replaced");
    for (int i = 0; i < p.input_count(); ++i) {
      if (p.input(i).dtype() != MGE_DTYPE_F32 || p.input(i).elements() != p.output(0).elements()) {
        return offers.Refuse("only float32, and no broadcast");
      }
    }
    offers.Add({.id = "toy." + source,
                .attributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT | MGE_KERNEL_COMPILES |
                              MGE_KERNEL_ALLOCATES,  // the driver allocates in toy_launch
                .cost_us = 10 + static_cast<double>(p.output(0).bytes()) / 1000});
  }
  Elementwise(const mge::Problem& p, const mge::Candidate&)
      : device(&p.device<Device>()), program(device->ProgramOf(SourceOf(p))), count(p.output(0).elements()) {
    inputs = p.node().Is("Add") ? 2 : 1;
    second = inputs == 2 ? p.operand(0, 1) : 0;
  }
  void Bind(const mge::Binding& b) {
    slots[0] = b.input(0);
    slots[1] = b.input(second);
    slots[2] = b.output(0);
    state = b.state_index();
  }
  // [launch]
  mge::Result Launch(const mge_run* run) const {
    if (count == 0) return {};
    toy_kernel* object = mge::StateOf<State>(run, state).object;
    for (int i : {0, 1, 2}) {
      if (i == 1 && inputs == 1) continue;
      auto [memory, offset] = device->slabs.Find(mge::At<void>(run, slots[i]));  // no lock, no search
      if (toy_status s = toy_kernel_argument(object, i, memory, offset)) return ResultOf(s, "toy_kernel_argument");
    }
    return ResultOf(toy_launch(mge::QueueOf<Queue>(run).stream(), object, count), "toy_launch");
  }
  // [launch]

  Device* device;
  toy_program* program;
  uint64_t count;
  int inputs, second;
  mge::Slot slots[3];
  uint32_t state = 0;
};
constexpr mge::KernelRow kAdd = mge::Row<Elementwise>("Add"), kRelu = mge::Row<Elementwise>("Relu"),
                         kNeg = mge::Row<Elementwise>("Neg"), kAbs = mge::Row<Elementwise>("Abs");

bool IsPlainSum(const mge::Node& add) {
  return add.input(0).dtype() == MGE_DTYPE_F32 && add.input(0).elements() == add.input(1).elements();
}

// [claim]
// Older devices cannot run a program of two steps.
void ClaimAddAndOne(const mge::Pattern& graph, mge::ClaimList& claims) {
  if (toy_most_steps(claims.device<Device>().number) < 2) return;
  for (const char* op : {"Relu", "Neg", "Abs"}) {
    const mge::PatternNode pair = mge::Op(op, {mge::Op("Add").Where(IsPlainSum)});
    for (const mge::Match& match : graph.FindAll(pair)) claims.Offer("add_and_one", match.nodes, 10);
  }
}
// [claim]

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "example_driver", kVersion = "1.0";
  using Device = ::Device;
  using Memory = ::Memory;
  using Queue = ::Queue;
  using Fence = ::Fence;
  using Kernels = mge::Kernels<kAdd, kRelu, kNeg, kAbs>;
  using Claims = mge::Claims<ClaimAddAndOne>;
  static const void* Extension(std::string_view name, uint32_t min_version) {
    return mge::MemoryHandles<Device, UserMemory>(name, min_version);
  }
  // [start]
  static mge::Result Start() {
    mge::KeepSignalHandlers keep;
    return ResultOf(toy_start(), "toy_start");
  }
  static void Stop() {
    mge::KeepSignalHandlers keep;
    toy_stop();
  }
  // [start]
};

}  // namespace

MGE_BACKEND(Backend);
