// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/context.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::string_view kTypes[] = {"cpu", "gpu", "cpu_pinned"};

struct Entry {
  uint64_t id;
  Context context;
};

struct Scopes {
  uint64_t next_id = 1;
  std::vector<Entry> stack;
};

Scopes& ThreadScopes() {
  thread_local Scopes scopes;
  return scopes;
}

}  // namespace

absl::StatusOr<Context> Context::Create(std::string_view device_type, int device_id) {
  bool known = std::find(std::begin(kTypes), std::end(kTypes), device_type) != std::end(kTypes);
  std::string_view nearest = known ? "" : Nearest(device_type, kTypes);
  std::string text = fmt::format("{}({})", device_type, device_id);
  absl::StatusOr<DeviceName> name = ParseDeviceName(text);
  if (!nearest.empty() || !name.ok() || device_type == "multithread" || device_type == "xpu") {
    return Fail(errors::kBadDeviceName, fmt::format("'{}' is not a context", EscapeControl(text)),
                {.what = fmt::format("the types are cpu, gpu, cpu_pinned, and the classes of "
                                     "devices; an id is 0 or more.{}",
                                     DidYouMean(nearest)),
                 .fix = "write cpu(0), gpu(1) or cpu_pinned(0)"});
  }
  return Context(std::string(device_type), device_id);
}

absl::StatusOr<Context> Context::FromString(std::string_view text) {
  MGE_ASSIGN_OR_RETURN(DeviceName name, ParseDeviceName(text));
  return Create(name.cls, std::max(name.number, 0));
}

Context Context::Of(const DeviceName& name) {
  return Context(name.cls == "multithread" ? "cpu" : name.cls, std::max(name.number, 0));
}

Context Context::Of(const Device& device) {
  if (const std::string& gpu = device.gpu_name(); !gpu.empty()) {
    if (absl::StatusOr<Context> context = FromString(gpu); context.ok()) return *std::move(context);
  }
  return Context(std::string(device.class_name()), device.number());
}

std::string Context::ToString() const { return fmt::format("{}({})", type_, id_); }

DeviceName Context::name() const { return {.cls = type_, .number = id_, .context = true}; }

Context Cpu(int device_id) { return Context("cpu", device_id); }
Context Gpu(int device_id) { return Context("gpu", device_id); }
Context CpuPinned(int device_id) { return Context("cpu_pinned", device_id); }

ContextScope::ContextScope(Context context) {
  Scopes& scopes = ThreadScopes();
  id_ = scopes.next_id++;
  scopes.stack.push_back({id_, std::move(context)});
}

ContextScope::~ContextScope() {
  std::vector<Entry>& stack = ThreadScopes().stack;
  for (size_t i = stack.size(); i-- > 0;) {
    if (stack[i].id == id_) {
      stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
}

std::optional<Context> ScopedContext() {
  const std::vector<Entry>& stack = ThreadScopes().stack;
  if (stack.empty()) return std::nullopt;
  return stack.back().context;
}

absl::StatusOr<Context> CurrentContext(Devices& devices, const std::optional<DeviceSpec>& default_device) {
  if (std::optional<Context> scoped = ScopedContext()) return *scoped;
  if (!default_device) return Cpu();
  const DeviceName& name = default_device->alternatives.front().front();
  if (name.cls != "xpu") return Context::Of(name);
  MGE_ASSIGN_OR_RETURN(DeviceUse use, devices.Find(name, "the default device"));
  return Context::Of(*use.device);
}

absl::StatusOr<DeviceSpec> RequestedDevices(std::string_view call, const std::optional<DeviceSpec>& default_device) {
  if (!call.empty()) return ParseDeviceSpec(call);
  if (std::optional<Context> scoped = ScopedContext()) return DeviceSpec{{{scoped->name()}}};
  if (default_device) return *default_device;
  return DeviceSpec{{{DeviceName{.cls = "xpu"}}}};
}

int NumGpus(Devices& devices) { return devices.gpu_count(); }

absl::StatusOr<MemoryInfo> GpuMemoryInfo(Devices& devices, int device_id) {
  MGE_ASSIGN_OR_RETURN(Context context, Context::Create("gpu", device_id));
  MGE_ASSIGN_OR_RETURN(DeviceUse use, devices.Find(context.name(), "gpu_memory_info"));
  return use.device->QueryMemory();
}

absl::StatusOr<DeviceUse> PinnedDevice(Devices& devices, int number) {
  if (number == kNoPinned || devices.gpu_count() == 0) return DeviceUse();
  MGE_ASSIGN_OR_RETURN(DeviceUse use, devices.Find(Gpu(number).name(), "cpu_pinned"));
  return use.device->queue_api() ? use : DeviceUse();
}

absl::Status EmptyCache(Devices& devices, const Context& context) {
  MGE_ASSIGN_OR_RETURN(DeviceUse use, context.device_type() == "cpu_pinned" ? PinnedDevice(devices, context.device_id())
                                                                            : devices.Locate(context.name(), "empty_cache"));
  if (!use.device) return absl::OkStatus();
  const int32_t memory = context.device_type() == "cpu_pinned" ? MGE_MEMORY_PINNED : MGE_MEMORY_DEVICE;
  // A request that can never be met makes all keepers of the budget give back what is idle.
  absl::StatusOr<bool> refused = Fail(errors::kOutOfMemory, "empty_cache");
  use.device->budget(memory).Press(nullptr, 0, refused, [&] { return refused; });
  use.device->Trim(MGE_TRIM_ALL);
  return absl::OkStatus();
}

}  // namespace mge
