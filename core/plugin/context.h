// SPDX-License-Identifier: Apache-2.0
// Contexts: a device type and an id, and the thread's stack of them; which device work goes to when nobody says.
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

// A value; whether the device exists is judged when it is used.
class Context {
 public:
  Context() = default;  // cpu(0)
  // "cpu", "gpu", "cpu_pinned", or the class of a backend's device. kBadDeviceName.
  static absl::StatusOr<Context> Create(std::string_view device_type, int device_id = 0);
  // "gpu(1)"; also any name of one device, such as "cuda0". kBadDeviceName.
  static absl::StatusOr<Context> FromString(std::string_view text);
  static Context Of(const DeviceName& name);

  const std::string& device_type() const { return type_; }
  int device_id() const { return id_; }
  std::string ToString() const;  // "gpu(1)"
  DeviceName name() const;       // what Devices resolves
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

// Makes a context the thread's current one for a while. Nests; one context may be entered several times; scopes may end in
// any order, but on the thread that began them.
class ContextScope {
 public:
  explicit ContextScope(Context context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  uint64_t id_;
};

// The innermost scope of this thread, if there is one.
std::optional<Context> ScopedContext();

// The innermost scope, else the default device if one is set, else cpu(0). Of a list the first name counts, and "xpux" is
// the device that it resolves to.
absl::StatusOr<Context> CurrentContext(const Devices& devices, const std::optional<DeviceSpec>& default_device);

// Where work goes: what the call says (unless empty), else the scope, else the default device, else xpux.
absl::StatusOr<DeviceSpec> RequestedDevices(std::string_view call, const std::optional<DeviceSpec>& default_device);

int NumGpus(const Devices& devices);  // 0 where there is no driver or no device; never an error
// Free and total bytes of gpuN. kDeviceUnusable if there is none.
absl::StatusOr<MemoryInfo> GpuMemoryInfo(const Devices& devices, int device_id = 0);
// Gives the cached memory of the context's device back to its driver; what is in use stays. A device that was never used has
// nothing cached.
absl::Status EmptyCache(const Devices& devices, const Context& context);

}  // namespace mge

template <>
struct std::hash<mge::Context> {
  size_t operator()(const mge::Context& c) const noexcept {
    return std::hash<std::string>()(c.device_type()) * 31 + static_cast<size_t>(c.device_id());
  }
};
