// SPDX-License-Identifier: Apache-2.0
// Devices: the backends of one runtime and their numbered devices. Resolves device names to devices.
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
  DeclareSettings settings = {};  // empty: the settings of backends have their default values
  Logger logger = Logger();
  const mge_kernel_api* reference_kernels = nullptr;  // kernels of the built-in device `host`; optional
  MemoryOptions memory = {};
  // Options of GPUs: the pool, if it is not empty, and the numbers replace those of `memory`.
  MemoryOptions gpu_memory = {};
  std::vector<std::pair<std::string, std::string>> reserve_of_class = {};  // {"cuda", "all"}: replace memory.reserve
  // Budgets in bytes by device name ("cpu0", "gpu0"). `memory_limit` is the budget of each other device. 0: no limit.
  std::vector<std::pair<std::string, uint64_t>> memory_limits = {};
  uint64_t memory_limit = 0;
};

// A device, with the options that its name contained.
struct DeviceUse {
  Device* device = nullptr;
  int threads = 0;           // 0: as set elsewhere
  bool synchronous = false;  // every step runs in the calling thread
  bool pinned = false;       // tensors are in page-locked memory
};

// The devices chosen for a request.
struct Resolution {
  std::vector<DeviceUse> devices;        // the first alternative that can be used: one device, or all to split over; opened
  std::vector<DeviceUse> fallbacks;      // the later alternatives, for steps that `devices` cannot run; not opened
  std::vector<std::string> passed_over;  // "gpu0: why", for each alternative that cannot be used
};

// The backends and devices of one runtime. Owns the devices and shares the backends with other runtimes of the process.
// The const methods are thread-safe.
class Devices {
 public:
  // Finds and loads every backend. A backend that cannot be used is a row of files() and not an error. Fails with
  // kBadSetting if a memory option is invalid, and if the built-in device does not start.
  static absl::StatusOr<std::unique_ptr<Devices>> Create(DevicesOptions options);
  // Closes the devices, then releases the backends in reverse order of loading. No device may be in use.
  ~Devices();

  std::span<const std::unique_ptr<Device>> all() const { return devices_; }  // as listed by `mge devices`
  const std::vector<PluginFile>& files() const { return files_; }            // as listed by `mge plugins`
  const std::vector<PluginDirectory>& directories() const { return directories_; }
  const Quarantine& quarantine() const { return quarantine_; }
  Device& host() const { return *host_; }                                                // the reference evaluators
  void SetOfBackend(std::string_view backend, std::string_view key, std::string value);  // Backend::Set
  int gpu_count() const;  // the number of usable GPUs: gpu0 .. gpuN-1

  // Chooses and opens the devices for `spec`. If no alternative can be used, fails with kDeviceUnusable or kOutOfMemory; the
  // error names the reasons. If a class is unknown but similar to a known one, fails with kBadDeviceName. `where` is the
  // source of the request, for errors: "MGE_DEFAULT_DEVICE (environment)".
  absl::StatusOr<Resolution> Resolve(const DeviceSpec& spec, std::string_view where = {}) const;
  absl::StatusOr<Resolution> Resolve(std::string_view spec, std::string_view where = {}) const;
  // Returns the device of one name. For the number `x`, that is the first device that can be opened. Find() opens the
  // device. Locate() opens nothing. Errors are those of Resolve().
  absl::StatusOr<DeviceUse> Find(const DeviceName& name, std::string_view where = {}) const;
  absl::StatusOr<DeviceUse> Locate(const DeviceName& name, std::string_view where = {}) const;
  // Returns true if MGE or the file of some backend knows the class of every device in `spec`. The device may be absent, but its
  // name is not misspelt.
  bool KnowsClasses(const DeviceSpec& spec) const;

 private:
  Devices() = default;
  void Number(const DevicesOptions& options);
  void Name(Device& device, std::string name, const DevicesOptions& options) const;
  std::vector<Device*> OfClass(std::string_view cls) const;  // by number
  std::vector<Device*> BestFirst() const;                    // the devices that "xpu" may choose, best first
  absl::StatusOr<std::vector<Device*>> Candidates(const DeviceName& name, std::string_view where) const;
  absl::StatusOr<Device*> OpenFirst(const DeviceName& name, std::string_view where,
                                    std::vector<std::string>& passed_over) const;
  absl::Status NoSuchClass(const DeviceName& name, std::string_view where) const;
  absl::Status Unusable(const DeviceName& name, std::string why, std::string_view where, std::string fix = {}) const;

  std::unique_ptr<HostDevice> host_table_;
  std::vector<PluginDirectory> directories_;
  Quarantine quarantine_;
  std::vector<PluginFile> files_;
  std::vector<std::shared_ptr<Backend>> backends_;  // in order of loading; the built-in one first
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> gpus_;  // gpu0, gpu1...; usable devices come first
  Device* host_ = nullptr;
};

}  // namespace mge
