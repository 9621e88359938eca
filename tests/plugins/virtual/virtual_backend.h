// SPDX-License-Identifier: Apache-2.0
// The virtual backend, called through its tables, with a minimal host that provides settings.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "mge/plugin.h"

namespace mge {

// An error slot. The host below writes the text into it.
struct ErrorText {
  std::string text;
  operator mge_error*() { return reinterpret_cast<mge_error*>(this); }
};

using Settings = std::map<std::string, std::string>;  // values as the host passes them: booleans as 1 and 0, sizes in bytes
inline constexpr const char* kNoValue = "no value";   // the host returns MGE_NOT_FOUND

// A started backend. The destructor closes its devices and stops it. Device() opens a device at the first call.
class VirtualBackend {
 public:
  explicit VirtualBackend(Settings settings = Settings{{"virtual.devices", "1"}}) : settings_(std::move(settings)) {
    library_ = dlopen(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so", RTLD_NOW | RTLD_LOCAL);
    if (!library_) {
      ADD_FAILURE() << dlerror();
      std::abort();
    }
    auto query = reinterpret_cast<mge_plugin_query_fn>(dlsym(library_, MGE_PLUGIN_QUERY_SYMBOL));
    mge_query_in in = {sizeof(in), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, MGE_ABI_HASH};
    mge_query_out out = {};
    out.struct_size = sizeof(out);
    if (query(&in, &out) != MGE_OK || !out.plugin) {  // usually a library of another build
      ADD_FAILURE() << std::string_view(out.reason.data, out.reason.size);
      std::fprintf(stderr, "mge_virtual.so: %.*s\n", static_cast<int>(out.reason.size), out.reason.data);
      std::abort();
    }
    plugin_ = out.plugin;
    host_.struct_size = sizeof(host_);
    host_.abi_minor = MGE_ABI_MINOR;
    host_.self = this;
    host_.fail = [](void*, mge_error* error, mge_code code, const char* text, uint64_t size) {
      if (error) reinterpret_cast<ErrorText*>(error)->text.assign(text, size);
      return code;
    };
    host_.log = [](void* self, int32_t, const char* text, uint64_t size) {
      static_cast<VirtualBackend*>(self)->logged.emplace_back(text, size);
    };
    host_.setting = [](void* self, uint32_t index, mge_text* out) {
      auto* b = static_cast<VirtualBackend*>(self);
      const mge_setting& row = *b->plugin_->settings[index];
      auto it = b->settings_.find(std::string(row.key.data, row.key.size));
      if (it != b->settings_.end() && it->second == kNoValue) return mge_code{MGE_NOT_FOUND};
      *out = row.default_value;
      if (it != b->settings_.end()) *out = {it->second.data(), it->second.size()};
      if (row.type == MGE_SETTING_BYTES && it == b->settings_.end()) *out = {"1073741824", 10};
      return mge_code{MGE_OK};
    };
    host_.core_setting = [](void*, const mge_text*, mge_text*) { return mge_code{MGE_NOT_FOUND}; };
    host_.thread_count = [](void*) { return uint32_t{3}; };
    host_.parallel_for = [](void* self, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
      static_cast<VirtualBackend*>(self)->chunks += chunks;
      std::vector<std::thread> threads;
      for (uint64_t i = 0; i < chunks; ++i) threads.emplace_back(body, context, i);
      for (std::thread& t : threads) t.join();
    };
    EXPECT_EQ(plugin_->start(&host_, nullptr), MGE_OK);
  }
  ~VirtualBackend() {
    for (auto& [index, device] : open_) plugin_->device->close(device);
    plugin_->stop();
  }
  VirtualBackend(const VirtualBackend&) = delete;
  VirtualBackend& operator=(const VirtualBackend&) = delete;

  const mge_plugin& plugin() const { return *plugin_; }
  const mge_memory_api& memory() const { return *plugin_->memory; }
  const mge_queue_api& queues() const { return *plugin_->queue; }
  const mge_host* host() const { return &host_; }

  struct Listed {
    std::string class_name, name, reason;
    uint32_t score, flags;
    uint64_t memory;
  };
  std::vector<Listed> List() {
    std::vector<Listed> list;
    mge_device_sink sink = {
        sizeof(sink), 0, &list, [](void* self, const mge_device_info* d) {
          auto text = [](const mge_text& t) { return std::string(t.data ? t.data : "", t.size); };
          static_cast<std::vector<Listed>*>(self)->push_back(
              {text(d->class_name), text(d->name), text(d->reason), d->score, d->flags, d->memory_total});
        }};
    EXPECT_EQ(plugin_->device->enumerate(&sink, nullptr), MGE_OK);
    return list;
  }
  mge_device* Device(uint32_t index = 0) {
    auto [it, fresh] = open_.emplace(index, nullptr);
    ErrorText error;
    if (fresh) {
      EXPECT_EQ(plugin_->device->open(index, &it->second, error), MGE_OK) << error.text;
    }
    return it->second;
  }

  std::vector<std::string> logged;
  std::atomic<uint64_t> chunks = 0;  // number of chunks that the backend gave to the host's threads

 private:
  Settings settings_;
  void* library_;
  const mge_plugin* plugin_;
  mge_host host_ = {};
  std::map<uint32_t, mge_device*> open_;
};

// Memory of a device, or pinned memory of the host. The destructor releases it.
class Slab {
 public:
  Slab(VirtualBackend& b, uint64_t bytes, uint32_t device = 0, int32_t memory_class = MGE_MEMORY_DEVICE)
      : b_(b), device_(b.Device(device)) {
    slab_.struct_size = sizeof(slab_);
    ErrorText error;
    EXPECT_EQ(b.memory().slab_acquire(device_, memory_class, bytes, &slab_, error), MGE_OK) << error.text;
  }
  ~Slab() {
    if (slab_.address) b_.memory().slab_release(device_, &slab_);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  char* at(uint64_t offset = 0) const { return static_cast<char*>(slab_.address) + offset; }
  const mge_slab& raw() const { return slab_; }
  mge_slab Take() { return std::exchange(slab_, {}); }

 private:
  VirtualBackend& b_;
  mge_device* device_;
  mge_slab slab_ = {};
};

class Fence {
 public:
  explicit Fence(VirtualBackend& b, uint32_t device = 0) : b_(b) {
    EXPECT_EQ(b.queues().fence_create(b.Device(device), &fence_, nullptr), MGE_OK);
  }
  ~Fence() {
    if (fence_) b_.queues().fence_destroy(fence_);
  }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  operator mge_fence*() const { return fence_; }
  // Waits for `value`, by default without timeout. Stores the text of a failure in `error`.
  mge_code Wait(uint64_t value, uint64_t timeout_ns = UINT64_MAX) {
    error.text.clear();
    return b_.queues().host_wait(fence_, value, timeout_ns, error);
  }
  void Destroy() { b_.queues().fence_destroy(std::exchange(fence_, nullptr)); }
  ErrorText error;

 private:
  VirtualBackend& b_;
  mge_fence* fence_ = nullptr;
};

class Queue {
 public:
  explicit Queue(VirtualBackend& b, int32_t kind = MGE_QUEUE_COMPUTE, uint32_t device = 0)
      : api_(b.queues()), done_(b, device) {
    EXPECT_EQ(api_.create(b.Device(device), kind, &queue_, nullptr), MGE_OK);
  }
  ~Queue() { Destroy(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  operator mge_queue*() const { return queue_; }
  void Destroy() {
    if (queue_) api_.destroy(std::exchange(queue_, nullptr));
  }

  mge_code Copy(void* to, const void* from, uint64_t bytes) { return api_.copy(queue_, to, from, bytes, error); }
  mge_code Signal(mge_fence* fence, uint64_t value) { return api_.signal(queue_, fence, value, error); }
  mge_code Wait(mge_fence* fence, uint64_t value) { return api_.wait(queue_, fence, value, error); }
  // Waits for all enqueued work. Call it only if nothing on the queue has failed, because a failed fence stays failed.
  mge_code Finish() {
    if (mge_code code = Signal(done_, ++count_); code != MGE_OK) return code;
    mge_code code = done_.Wait(count_);
    error.text = done_.error.text;
    return code;
  }
  ErrorText error;

 private:
  const mge_queue_api& api_;
  mge_queue* queue_ = nullptr;
  Fence done_;
  uint64_t count_ = 0;
};

// Settings for a Gate on device 0.
inline const Settings kGated = {{"virtual.devices", "2"}, {"virtual.fault", "0:copy@1=hang"}};

// Holds queues back until Open(). It uses a copy that hangs. Create it before any other copy of device 0, and after the
// queues that it holds. The backend has the settings kGated.
class Gate {
 public:
  explicit Gate(VirtualBackend& b) : slab_(b, 8), fence_(b), queue_(b) {
    EXPECT_EQ(queue_.Copy(slab_.at(), &byte_, 1), MGE_OK);
    EXPECT_EQ(queue_.Signal(fence_, 1), MGE_OK);
    EXPECT_EQ(fence_.Wait(1, 20'000'000), MGE_DEADLINE_EXCEEDED);  // until then the copy has begun
  }
  // Delays what is enqueued on the queue from now on.
  void Hold(Queue& queue) { EXPECT_EQ(queue.Wait(fence_, 1), MGE_OK); }
  void Open() { queue_.Destroy(); }

 private:
  Slab slab_;
  Fence fence_;
  char byte_ = 0;
  Queue queue_;
};

inline mge_text TextOf(const std::string& s) { return {s.data(), s.size()}; }

// A kernel of an operator whose inputs are vectors of n elements of one type. The output has `outputs` elements, n by
// default. Operand i is bound to base i.
class ElementwiseKernel {
 public:
  ElementwiseKernel(VirtualBackend& b, std::string op, int64_t n, int inputs = 1, mge_dtype dtype = MGE_DTYPE_F32,
                    int64_t outputs = 0)
      : b_(b), op_(std::move(op)), n_(n), outputs_(outputs ? outputs : n), values_(static_cast<size_t>(inputs) + 1) {
    for (mge_value& v : values_) {
      v = {};
      v.struct_size = sizeof(v);
      v.dtype = dtype;
      v.rank = 1;
      v.dims = &n_;
      v.uses = 1;
      value_list_.push_back(&v);
      operands_.push_back(static_cast<int32_t>(operands_.size()));
    }
    values_.back().dims = &outputs_;
    uint64_t count = static_cast<uint64_t>(inputs);
    node_ = {};
    node_.struct_size = sizeof(node_);
    node_.version = 22;
    node_.op = TextOf(op_);
    node_.inputs = operands_.data();
    node_.input_count = count;
    node_.outputs = &operands_.back();
    node_.output_count = 1;
    graph_ = {sizeof(graph_), 0, &nodes_, 1, value_list_.data(), count + 1, operands_.data(), count, &operands_.back(), 1};
    problem_ = {sizeof(problem_), 1, &graph_, nullptr, nullptr, 0};
    mge_candidate_sink sink = {sizeof(sink), 0, this,
                               [](void* self, const mge_candidate* c) {
                                 auto* k = static_cast<ElementwiseKernel*>(self);
                                 k->ids.emplace_back(c->id.data, c->id.size);
                                 k->candidates.push_back(*c);
                               },
                               [](void*, const mge_text*, const mge_text*) {}};
    EXPECT_EQ(b.plugin().kernel->enumerate(b.Device(), &problem_, nullptr, &sink, nullptr), MGE_OK);
    EXPECT_FALSE(candidates.empty());
    for (size_t i = 0; i < ids.size(); ++i) candidates[i].id = TextOf(ids[i]);
  }
  ~ElementwiseKernel() {
    if (kernel_) b_.plugin().kernel->destroy(kernel_);
  }
  ElementwiseKernel(const ElementwiseKernel&) = delete;
  ElementwiseKernel& operator=(const ElementwiseKernel&) = delete;

  void Prepare(size_t candidate = 0) {
    mge_prepared prepared = {};
    prepared.struct_size = sizeof(prepared);
    ErrorText error;
    ASSERT_EQ(b_.plugin().kernel->prepare(b_.Device(), &problem_, &candidates[candidate], &prepared, error), MGE_OK)
        << error.text;
    kernel_ = prepared.kernel;
    args_.resize(prepared.args_bytes / 16 + 1);
    std::vector<mge_slot> slots;
    for (int32_t operand : operands_) slots.push_back({static_cast<uint32_t>(operand), 0, 0});
    mge_binding binding = {};
    binding.struct_size = sizeof(binding);
    binding.inputs = slots.data();
    binding.outputs = &slots.back();
    ASSERT_EQ(b_.plugin().kernel->bind(kernel_, &binding, args_.data(), &step_, error), MGE_OK) << error.text;
  }
  // Enqueues the kernel. `operands` are the inputs, then the output.
  mge_code Run(mge_queue* queue, std::initializer_list<void*> operands) {
    if (!step_) Prepare();
    mge_run run = {};
    run.struct_size = sizeof(run);
    run.width = 1;
    run.bases = operands.begin();
    run.queue = queue;
    run.host = b_.host();
    run.error = error;
    return step_(args_.data(), &run);
  }

  std::vector<std::string> ids;
  std::vector<mge_candidate> candidates;
  ErrorText error;

 private:
  struct alignas(16) Block {
    char bytes[16];
  };
  VirtualBackend& b_;
  std::string op_;
  int64_t n_, outputs_;
  std::vector<mge_value> values_;
  std::vector<const mge_value*> value_list_;
  std::vector<int32_t> operands_;
  mge_node node_;
  const mge_node* nodes_ = &node_;
  mge_graph graph_;
  mge_problem problem_;
  mge_kernel* kernel_ = nullptr;
  mge_step_fn step_ = nullptr;
  std::vector<Block> args_;
};

}  // namespace mge
