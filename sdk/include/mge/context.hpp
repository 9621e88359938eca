// SPDX-License-Identifier: Apache-2.0
// Contexts, which say where new work of a thread goes; part of mge.hpp. The lower-case functions have the names of
// mxnet.context.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "mge/context.h"
#include "mge/namespace.hpp"
#include "mge/result.hpp"
#include "mge/runtime.hpp"

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {

// A device type and an id, such as gpu(1). A plain value: type and device are checked when the context is used.
class Context {
 public:
  Context() : Context("cpu") {}
  // `device_type` is "cpu", "gpu", "cpu_pinned", or a class of devices such as "cuda".
  explicit Context(std::string_view device_type, int device_id = 0) {
    raw_.device_id = device_id;
    // No type is so long. Without it, every use of the context fails.
    if (device_type.size() < sizeof(raw_.device_type)) device_type.copy(raw_.device_type, device_type.size());
  }
  explicit Context(const mge_context& raw) : raw_(raw) {}
  // Creates a context of a type that is known.
  static Result<Context> Create(const std::string& device_type, int device_id = 0) {
    return Take([&](mge_context* out) { return mge_context_create(device_type.c_str(), device_id, out); });
  }
  // Parses "gpu(1)" or any other name of one device.
  static Result<Context> Parse(const std::string& text) {
    return Take([&](mge_context* out) { return mge_context_parse(text.c_str(), out); });
  }

  std::string_view device_type() const { return raw_.device_type; }
  int device_id() const { return raw_.device_id; }
  std::string ToString() const { return raw_.device_type + ("(" + std::to_string(raw_.device_id)) + ")"; }
  // Returns memory of the device that nothing uses to its driver; see mge_device_empty_cache.
  Status empty_cache(const Runtime& runtime) const {
    return Status(mge_device_empty_cache(runtime.get(), ToString().c_str()));
  }
  friend bool operator==(const Context& a, const Context& b) {
    return a.device_type() == b.device_type() && a.device_id() == b.device_id();
  }
  const mge_context* get() const { return &raw_; }

 private:
  template <typename F>
  static Result<Context> Take(F make) {
    mge_context raw = {};
    if (Status s(make(&raw)); !s.ok()) return s;
    return Context(raw);
  }
  mge_context raw_ = {};
};

inline Context cpu(int device_id = 0) { return Context("cpu", device_id); }
inline Context gpu(int device_id = 0) { return Context("gpu", device_id); }
// Host memory from which copies to the GPU are fast.
inline Context cpu_pinned(int device_id = 0) { return Context("cpu_pinned", device_id); }

// Returns the thread's context: of the innermost scope, else the default device if it is set, else cpu(0). Fails if the default
// device cannot be used.
inline Result<Context> current_context(const Runtime& runtime) {
  mge_context raw = {};
  if (Status s(mge_context_current(runtime.get(), &raw)); !s.ok()) return s;
  return Context(raw);
}
// Returns the number of usable GPUs.
inline int num_gpus(const Runtime& runtime) { return mge_num_gpus(runtime.get()); }

struct GpuMemory {
  uint64_t free_bytes, total_bytes;
};
// Fails if the GPU does not exist, or with the error of its driver.
inline Result<GpuMemory> gpu_memory_info(const Runtime& runtime, int device_id = 0) {
  GpuMemory out = {};
  if (Status s(mge_gpu_memory_info(runtime.get(), device_id, &out.free_bytes, &out.total_bytes)); !s.ok()) return s;
  return out;
}

// Makes a context, or any other name of a device, the thread's current one while the object exists. Sessions and tensors that name
// no device use it.
//
//   auto scope = mge::ContextScope::Enter(mge::gpu(1));
//   if (!scope.ok()) return scope.status();
class [[nodiscard]] ContextScope {
 public:
  static Result<ContextScope> Enter(const Context& context) { return Enter(context.ToString()); }
  static Result<ContextScope> Enter(const std::string& device) {
    if (Status s(mge_device_push(device.c_str())); !s.ok()) return s;
    return ContextScope();
  }
  ~ContextScope() {
    if (open_) mge_status_release(mge_device_pop());
  }
  ContextScope(ContextScope&& other) noexcept : open_(std::exchange(other.open_, false)) {}
  ContextScope& operator=(ContextScope&&) = delete;

 private:
  ContextScope() = default;
  bool open_ = true;  // false: moved from
};

}  // MGE_APPLICATION_NAMESPACE(v0)
}  // namespace mge
