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
#include "core/plugin/backends.h"
#include "core/plugin/device.h"
#include "core/plugin/device_name.h"
#include "core/plugin/discovery.h"
#include "core/plugin/host_device.h"
#include "core/plugin/host_services.h"
#include "core/plugin/loader.h"
#include "core/plugin/verdict.h"

namespace mge {

struct DevicesOptions : StartContext {
  std::vector<PluginDirectory> directories = {};  // in order of precedence
  PluginRules rules = {};
  const mge_kernel_api* reference_kernels = nullptr;  // kernels of the built-in device `host`; optional
  MemoryOptions memory = {};
  // Options of GPUs: the pool, if it is not empty, and the numbers replace those of `memory`.
  MemoryOptions gpu_memory = {};
  std::vector<std::pair<std::string, std::string>> reserve_of_class = {};  // {"cuda", "all"}: replace memory.reserve
  // Budgets in bytes by device name ("cpu0", "gpu0"). `memory_limit` is the budget of each other device. 0: no limit.
  std::vector<std::pair<std::string, uint64_t>> memory_limits = {};
  uint64_t memory_limit = 0;
};

inline constexpr int kNoPinned = -1;

// A device, with the options that its name contained.
struct DeviceUse {
  Device* device = nullptr;
  int threads = 0;           // 0: as set elsewhere
  bool synchronous = false;  // every step runs in the calling thread
  int stream = kNoStream;    // asynchronous runs on one stream follow one another
  int pinned = kNoPinned;    // tensors in host memory are page-locked: the number of the GPU of cpu_pinned(0)
  // Keeps the device. Whoever uses a device beyond a call holds it: a lost device may be replaced by a new one.
  std::shared_ptr<Device> owner = {};
};

// The devices chosen for a request.
struct Resolution {
  std::vector<DeviceUse> devices;        // the first alternative that can be used: one device, or all to split over; opened
  std::vector<DeviceUse> fallbacks;      // the later alternatives, for steps that `devices` cannot run; not opened
  std::vector<std::string> passed_over;  // "gpu0: why", for each alternative that cannot be used
};

// The backends and devices of one runtime. Shares the backends with other runtimes of the process. Thread-safe.
//
// A backend is started by the first request for one of its classes, and its devices are numbered then. The number of a
// device within its class never depends on what was requested before, because all backends of a class start together. The
// request `gpuN` starts all backends that list GPUs, and `xpu` starts all.
class Devices {
 public:
  // Finds the backends. Starts none but the built-in one. A backend that cannot be used is a row of files() and not an
  // error. Fails with kBadSetting if a memory option is invalid, and if the built-in device does not start.
  static absl::StatusOr<std::unique_ptr<Devices>> Create(DevicesOptions options);
  // Closes the devices, then releases the backends in reverse order of their start. No device may be in use.
  ~Devices();

  // Starts all backends at the same time (Backends::StartAll). Returns the names of those that take longer than `limit`.
  std::vector<std::string> StartAll(std::chrono::duration<double> limit = {});

  std::vector<std::shared_ptr<Device>> all() const;  // devices of the started backends, as listed by `mge devices`
  std::vector<PluginFile> files() const;             // as listed by `mge plugins`
  // The files of transports between processes, in order of precedence (core/plugin/transport.h).
  const std::vector<FoundPlugin>& transports() const { return backends_->transports(); }
  const std::vector<PluginDirectory>& directories() const { return options_.directories; }
  const Quarantine& quarantine() const { return options_.rules.quarantine; }
  Device& host() const { return *host_; }  // the reference evaluators
  // Backend::Set for a started backend.
  void SetOfBackend(std::string_view backend, std::string_view key, std::string value);
  int gpu_count();  // the number of usable GPUs: gpu0 .. gpuN-1; starts their backends

  // Chooses and opens the devices for `spec`. If no alternative can be used, fails with kDeviceUnusable or kOutOfMemory; the
  // error names the reasons. If a class is unknown but similar to a known one, fails with kBadDeviceName. `where` is the
  // source of the request, for errors: "MGE_DEFAULT_DEVICE (environment)". A device that is lost, and that its backend calls
  // reopenable, is replaced by a new one of the same name; its users keep the lost one.
  absl::StatusOr<Resolution> Resolve(const DeviceSpec& spec, std::string_view where = {});
  absl::StatusOr<Resolution> Resolve(std::string_view spec, std::string_view where = {});
  // Returns the device of one name. For the number `x`, that is the first device that can be opened. Find() opens the
  // device. Locate() opens nothing. Errors are those of Resolve().
  absl::StatusOr<DeviceUse> Find(const DeviceName& name, std::string_view where = {});
  absl::StatusOr<DeviceUse> Locate(const DeviceName& name, std::string_view where = {});
  // Returns true if MGE or the file of some backend knows the class of every device in `spec`. The device may be absent, but
  // its name is not misspelt. Starts no backend.
  bool KnowsClasses(const DeviceSpec& spec) const;

 private:
  using List = std::vector<std::shared_ptr<Device>>;

  explicit Devices(DevicesOptions options) : options_(std::move(options)) {}
  bool LimitsGpus() const;           // whether memory.limit names a device as gpuN
  void Start(std::string_view cls);  // starts the backends for the class of a name, and numbers their devices
  void AddDevices();                 // adds the devices of newly started backends
  // Returns the device, or its successor if it is lost and can be reopened.
  std::shared_ptr<Device> Alive(const std::shared_ptr<Device>& device);

  // The functions below need RecordMutex().
  void Number(std::vector<std::string>& warnings);
  void NumberClass(const std::string& cls, List& added);
  void NumberGpus();
  void SetBudget(Device& device) const;
  List Known() const;                        // the devices of numbered classes, in order of files()
  List OfClass(std::string_view cls) const;  // by number
  List BestFirst() const;                    // the devices that "xpu" may choose, best first
  absl::StatusOr<List> CandidatesLocked(const DeviceName& name, std::string_view where) const;
  struct MissingClass;
  absl::Status NoSuchClass(const DeviceName& name, std::string_view where) const;
  absl::Status Unusable(const DeviceName& name, std::string why, std::string_view where, std::string fix = {}) const;

  absl::StatusOr<List> Candidates(const DeviceName& name, std::string_view where);
  absl::StatusOr<std::shared_ptr<Device>> OpenFirst(const DeviceName& name, std::string_view where,
                                                    std::vector<std::string>& passed_over);

  const DevicesOptions options_;
  std::unique_ptr<HostDevice> host_table_;
  std::shared_ptr<Backend> host_backend_;
  std::unique_ptr<Backends> backends_;
  std::shared_ptr<Device> host_;

  // Guarded by RecordMutex().
  std::vector<std::pair<const Backend*, List>> devices_;  // by started backend
  std::vector<std::string> numbered_;                     // classes whose devices have their numbers
  std::vector<std::string> absent_;                       // names in memory.limit about which a warning was written
  List gpus_;                                             // gpu0, gpu1...; usable devices come first
  bool gpus_numbered_ = false;
};

}  // namespace mge
