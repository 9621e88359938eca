// SPDX-License-Identifier: Apache-2.0
// Contexts: a device type plus an id, and a stack of contexts per thread. The current context is the device of work for
// which the caller names no device.
//
//   ContextScope scope(Gpu(1));
//   CurrentContext().ToString();   // "gpu(1)"
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.h"
#include "core/plugin/device_name.h"
#include "core/plugin/devices.h"

namespace mge {

// A device type and an id. A plain value: whether the device exists is checked when the context is used.
class Context {
 public:
  Context() = default;  // cpu(0)
  // Creates a context. The type is "cpu", "gpu", "cpu_pinned", or the class of a backend's device. Otherwise fails with
  // kBadDeviceName.
  static absl::StatusOr<Context> Create(std::string_view device_type, int device_id = 0);
  // Parses "gpu(1)" or any other name of one device, such as "cuda0". Fails with kBadDeviceName.
  static absl::StatusOr<Context> FromString(std::string_view text);
  static Context Of(const DeviceName& name);
  // Returns the context of a device: gpu(1) if it is numbered as a GPU, else its class and number.
  static Context Of(const Device& device);

  const std::string& device_type() const { return type_; }
  int device_id() const { return id_; }
  std::string ToString() const;  // "gpu(1)"
  DeviceName name() const;       // the name to pass to Devices::Find() or Locate()
  friend bool operator==(const Context&, const Context&) = default;

 private:
  Context(std::string type, int id) : type_(std::move(type)), id_(id) {}
  friend Context Cpu(int);
  friend Context Gpu(int);
  friend Context CpuPinned(int);

  std::string type_ = "cpu";
  int id_ = 0;
};

Context Cpu(int device_id = 0);
Context Gpu(int device_id = 0);
Context CpuPinned(int device_id = 0);

// A scope in which a context is the thread's current one. Scopes nest, and one context may be entered several times. Scopes
// may end in any order, but each must end on the thread that created it.
class ContextScope {
 public:
  explicit ContextScope(Context context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  uint64_t id_;
};

// Returns the context of this thread's innermost scope, or nullopt if there is no scope.
std::optional<Context> ScopedContext();

// Returns the context of the innermost scope, else the default device if one is set, else cpu(0). If the default device is a
// list, its first name is used. "xpux" is resolved to a device, which is opened. Fails if that device cannot be used.
absl::StatusOr<Context> CurrentContext(Devices& devices, const std::optional<DeviceSpec>& default_device);

// Returns the devices for a piece of work: `call` unless it is empty, else the innermost scope, else the default device,
// else "xpux". Fails with kBadDeviceName if `call` is malformed.
absl::StatusOr<DeviceSpec> RequestedDevices(std::string_view call, const std::optional<DeviceSpec>& default_device);

// Returns the number of usable GPUs: 0 if there is no driver or no device. Never fails.
int NumGpus(Devices& devices);
// Returns the free and total bytes of gpuN. Opens the device. Fails with kDeviceUnusable if gpuN does not exist.
absl::StatusOr<MemoryInfo> GpuMemoryInfo(Devices& devices, int device_id = 0);
// Returns the GPU that page-locks the memory of cpu_pinned(number), opened. Returns no device if there is no GPU: that
// memory is then ordinary host memory. Also for the number kNoPinned. Fails with kDeviceUnusable for other numbers.
absl::StatusOr<DeviceUse> PinnedDevice(Devices& devices, int number);
// Returns the cached memory of the context's device to its driver, idle instances of plans included. Memory in use is not
// affected. Does not open the device.
absl::Status EmptyCache(Devices& devices, const Context& context);

}  // namespace mge

template <>
struct std::hash<mge::Context> {
  size_t operator()(const mge::Context& c) const noexcept {
    return std::hash<std::string>()(c.device_type()) * 31 + static_cast<size_t>(c.device_id());
  }
};
