// SPDX-License-Identifier: Apache-2.0
// The backend under test, loaded into this (child) process and used only through its table.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/conform/backend_call.h"
#include "core/conform/check.h"
#include "core/conform/task.h"
#include "core/env/registry.h"
#include "core/plugin/host_services.h"
#include "core/plugin/loader.h"
#include "core/plugin/note.h"
#include "fmt/format.h"
#include "mge/faults.h"
#include "mge/plugin.h"

namespace mge::conform {

// The host services for the backend: those of the core, with allocations that can be made to fail, and a cache of blobs in
// memory that is empty at the start of each process. A process has one such object at a time.
class KitHost {
 public:
  explicit KitHost(std::vector<std::string> settings);
  const mge_host* table() const { return &table_; }
  int64_t outstanding() const { return inner_.allocations(); }  // number of blocks that are not released

 private:
  static KitHost* active_;
  HostServices inner_;
  std::mutex blobs_mutex_;
  std::map<std::string, std::string> blobs_;
  mge_host table_;
};

// Destroys a handle of the backend.
template <typename Handle>
struct Destroyer {
  void (*destroy)(Handle*) = nullptr;
  const char* name = "";  // "queue"
  void operator()(Handle* handle) const { InBackend(fmt::format("destroying a {}", name), destroy, handle); }
};
template <typename Handle>
using Owned = std::unique_ptr<Handle, Destroyer<Handle>>;

// The loaded backend. Its destructor closes the device and stops the backend; the library stays loaded.
class BackendUnderTest {
 public:
  // `given` and `reporter` must outlive this object.
  BackendUnderTest(std::string path, const Sources& given, CheckReporter& reporter)
      : path_(std::move(path)), given_(given), reporter_(reporter) {}
  ~BackendUnderTest();

  void Prepare(Needs needs);              // calls Load(), Start() and Open() as far as needed
  void Load();                            // opens the library and gets its table
  void Start();                           // starts the backend and lists the devices
  void Open();                            // opens the first usable device as device()
  Owned<mge_device> OpenAnother() const;  // opens the second usable device; throws NotOffered() if there is one
  void Close();
  void Stop();

  const std::string& path() const { return path_; }
  const Sources& given() const { return given_; }
  CheckReporter& reporter() { return reporter_; }
  void At(std::string_view where) { reporter_.At(where); }
  template <typename... Args>
  void At(fmt::format_string<Args...> where, Args&&... args) {
    At(std::string_view(fmt::format(where, std::forward<Args>(args)...)));
  }
  // Calls the entry point as a host of that major version.
  std::pair<mge_code, mge_query_out> Query(uint32_t major = MGE_ABI_MAJOR) const;
  const mge_plugin& plugin() const { return *plugin_; }
  KitHost& host() { return *host_; }
  const std::vector<DeviceDescription>& devices() const { return devices_; }  // the usable devices
  const DeviceDescription& description() const { return devices_[0]; }
  mge_device* device() const { return device_; }
  int64_t device_memory_used() const;  // bytes used by all programs; 0: unknown, or memory of the host
  bool host_accessible() const { return description().flags & MGE_DEVICE_HOST_ACCESSIBLE; }

 private:
  void CreateHost();

  std::string path_;
  const Sources& given_;
  CheckReporter& reporter_;
  void* library_ = nullptr;
  mge_plugin_query_fn query_ = nullptr;
  const mge_plugin* plugin_ = nullptr;
  std::unique_ptr<KitHost> host_;
  std::vector<DeviceDescription> devices_;
  std::string why_no_device_ =
      "it lists none";  // the listed devices that cannot be used, with the reasons, or how to get devices
  mge_device* device_ = nullptr;
  bool started_ = false;
};

// Returns an empty struct of the ABI.
template <typename T>
T Sized() {
  T out = {};
  out.struct_size = sizeof(out);
  return out;
}

// Returns the table of version 1 of an extension. Throws NotOffered() if the backend does not have it.
const void* ExtensionOf(const BackendUnderTest& tested, const char* name);
// Returns the extension that makes work fail and loses devices.
inline const mge_faults_api& FaultsOf(const BackendUnderTest& tested) {
  return *static_cast<const mge_faults_api*>(ExtensionOf(tested, MGE_FAULTS_EXTENSION));
}

// Reads the identity note of a file. Throws Broken() if there is none or it is invalid.
NoteReading NoteOf(const std::string& path);

// Throws Broken("WHAT failed: text (CODE)") if a call failed. Throws kResourceExhausted if the call reports, with a text, an
// allocation failure that the kit has caused.
void Answer(const mge_error& result, std::string_view what);
// Calls slot(args..., mge_error*) of the backend and returns its code and text.
template <typename F, typename... Args>
mge_error Try(std::string_view what, F&& slot, Args&&... args) {
  mge_error result;
  result.code = InBackend(what, slot, std::forward<Args>(args)..., &result);
  return result;
}
// Does the same and throws unless the call succeeds. An exception of the backend becomes Broken().
template <typename F, typename... Args>
void Call(std::string_view what, F&& slot, Args&&... args) {
  mge_error result;
  try {
    result = Try(what, slot, std::forward<Args>(args)...);
  } catch (const std::exception& e) {
    Broken("{} throws an exception, which the contract forbids: {}", what, e.what());
  }
  Answer(result, what);
}
// Throws Broken() unless slot(args..., mge_error*) fails with a text, and with the code `required` if it is not MGE_OK. The
// call must also fail if the error is NULL.
template <typename F, typename... Args>
void MustFail(mge_code required, std::string_view what, F&& slot, Args... args) {
  const mge_error result = Try(what, slot, args...);
  if (required != MGE_OK && result.code != required)
    Broken("{} returns {}; {} is required", what, CodeName(result.code), CodeName(required));
  if (result.code == MGE_OK) Broken("{} was accepted; an error is required", what);
  if (result.text.empty()) Broken("{} was refused without a text", what);
  if (InBackend(what, slot, args..., nullptr) == MGE_OK) Broken("{} was accepted for a host that passes no error", what);
}
// Creates a handle with create(args..., Handle**, mge_error*). `name` is the name of the object: "queue".
template <typename Handle, typename F, typename... Args>
Owned<Handle> Make(const char* name, void (*destroy)(Handle*), F create, Args&&... args) {
  Handle* made = nullptr;
  Call(fmt::format("creating a {}", name), create, std::forward<Args>(args)..., &made);
  if (!made) Broken("creating a {0} returned MGE_OK, but no {0}", name);
  return Owned<Handle>(made, {destroy, name});
}

// The values of the declared settings, from the user's input and by the rules of the registry.
struct ResolvedSettings {
  std::vector<std::string> values;  // in the order of the table, as the backend gets them
  std::string device_setting;       // the setting that is the number of devices, and 0 by default; empty: there is none
  std::string on_demand;            // "virtual.devices=2": the kit's value of it, unless the user gave one; else empty
};

// Resolves the values of all declared settings. Fails with kPluginRefused if a declaration is wrong, and with another error
// if the user's input is invalid. The command line must name only settings of the backend. An unknown variable with the
// backend's prefix is a warning to the logger, or an error if MGE_ENV_STRICT is set.
absl::StatusOr<ResolvedSettings> ResolveSettings(const mge_plugin& plugin, const Sources& given,
                                                 const Logger& logger = Logger(LogLevel::kSilent));

// Lists the devices of a started backend and checks their descriptions. `classes` (optional) are the allowed classes.
DeviceListing ListDevices(const mge_plugin& plugin, const std::vector<std::string>* classes = nullptr);

}  // namespace mge::conform
