// SPDX-License-Identifier: Apache-2.0
// Devices: all backends of one runtime and all their devices, numbered; turns what a user wrote into devices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/plugin/device.h"
#include "core/plugin/device_name.h"
#include "core/plugin/discovery.h"
#include "core/plugin/host_device.h"
#include "core/plugin/host_services.h"
#include "core/plugin/loader.h"
#include "core/plugin/verdict.h"

namespace mge {

struct DevicesOptions {
  std::vector<PluginDirectory> directories;  // in order of precedence
  PluginRules rules = {};
  ComputeFunctions compute = {};
  DeclareSettings settings = {};             // empty: a backend's settings have their defaults
  Logger logger = Logger();
  const mge_kernel_api* reference_kernels = nullptr;  // of the built-in device `host`; nullptr: it offers none
  MemoryOptions memory = {};
  // Budgets in bytes by device name ("cpu0", "gpu0"), and of every other device (0: none).
  std::vector<std::pair<std::string, uint64_t>> memory_limits = {};
  uint64_t memory_limit = 0;
};

// A device in the role that a name gave it.
struct DeviceUse {
  Device* device = nullptr;
  int threads = 0;           // 0: as set elsewhere
  bool synchronous = false;  // every step in the calling thread
  bool pinned = false;       // tensors live in page-locked memory
};

// Devices that serve a request.
struct Resolution {
  std::vector<DeviceUse> devices;    // of the first alternative that can be used: one, or all to split over
  std::vector<DeviceUse> fallbacks;  // of the later ones: for steps that `devices` cannot do
  std::vector<std::string> passed_over;  // "gpu0: why", for each alternative that cannot be used
};

class Devices {
 public:
  // Finds and loads every backend. A backend that cannot be used is a row of files(), never a failure.
  static absl::StatusOr<std::unique_ptr<Devices>> Create(DevicesOptions options);
  // Closes devices, then lets go of backends in reverse order of loading. Nothing of them may be in use.
  ~Devices();

  std::span<const std::unique_ptr<Device>> all() const { return devices_; }  // as listed by `mge devices`
  const std::vector<PluginFile>& files() const { return files_; }            // as listed by `mge plugins`
  const std::vector<PluginDirectory>& directories() const { return directories_; }
  const Quarantine& quarantine() const { return quarantine_; }
  Device& host() const { return *host_; }  // the reference evaluators
  void SetOfBackend(std::string_view backend, std::string_view key, std::string value);  // Backend::Set
  int gpu_count() const;  // usable ones that answer to gpu: gpu0 .. gpuN-1

  // The devices that serve `spec`, opened. kDeviceUnusable says why none does and what to do; kBadDeviceName if the class
  // exists nowhere and is near to one that does. `where` is the place of the request: "MGE_DEFAULT_DEVICE (environment)".
  absl::StatusOr<Resolution> Resolve(const DeviceSpec& spec, std::string_view where = {}) const;
  absl::StatusOr<Resolution> Resolve(std::string_view spec, std::string_view where = {}) const;
  // One device by one name, opened; `x` is the lowest that opens. Locate() opens nothing.
  absl::StatusOr<DeviceUse> Find(const DeviceName& name, std::string_view where = {}) const;
  absl::StatusOr<DeviceUse> Locate(const DeviceName& name, std::string_view where = {}) const;

 private:
  Devices() = default;
  void Number(const DevicesOptions& options);
  void Name(Device& device, std::string name, const DevicesOptions& options) const;
  std::vector<Device*> OfClass(std::string_view cls) const;  // by number
  std::vector<Device*> BestFirst() const;                    // those that xpu may take
  absl::StatusOr<std::vector<Device*>> Candidates(const DeviceName& name, std::string_view where) const;
  absl::StatusOr<Device*> OpenFirst(const DeviceName& name, std::string_view where, std::vector<std::string>& passed_over) const;
  absl::Status NoSuchClass(const DeviceName& name, std::string_view where) const;
  absl::Status Unusable(const DeviceName& name, std::string why, std::string_view where, std::string fix = {}) const;

  std::unique_ptr<HostDevice> host_table_;
  std::vector<PluginDirectory> directories_;
  Quarantine quarantine_;
  std::vector<PluginFile> files_;
  std::vector<std::shared_ptr<Backend>> backends_;  // in order of loading; the built-in one first
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> gpus_;  // gpu0, gpu1...; those that can be used come first
  Device* host_ = nullptr;
};

}  // namespace mge
