// SPDX-License-Identifier: Apache-2.0
// The backend under test, loaded into this (child) process and used only through its table.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/conform/allocations.h"
#include "core/conform/check.h"
#include "core/conform/check_reporter.h"
#include "core/conform/host_state.h"
#include "core/conform/settings.h"
#include "core/plugin/host_services.h"
#include "core/plugin/loader.h"
#include "core/plugin/note.h"
#include "fmt/format.h"
#include "mge/plugin.h"

namespace mge::conform {

// The host services for the backend: those of the core, with allocations that can be made to fail, and a cache of blobs in
// memory that is empty at the start of each process.
class KitHost {
 public:
  explicit KitHost(std::vector<std::string> settings);
  const mge_host* table() const { return &table_; }
  int64_t outstanding() const { return inner_.allocations(); }  // number of blocks that are not released
  uint64_t requests() const { return requests_; }
  // Makes the n-th next request fail (1 is the next one); 0: none.
  void FailAt(uint64_t n) { requests_ = 0, fail_at_ = n; }

 private:
  HostServices inner_;
  std::mutex blobs_mutex_;
  std::map<std::string, std::string> blobs_;
  std::atomic<uint64_t> requests_{0}, fail_at_{0};
  mge_host table_;
};

// The loaded backend. Its destructor closes the device and stops the backend; the library stays loaded.
class BackendUnderTest {
 public:
  // `given` and `reporter` must outlive this object.
  BackendUnderTest(std::string path, const Given& given, CheckReporter& reporter)
      : path_(std::move(path)), given_(given), reporter_(reporter) {}
  ~BackendUnderTest();
  BackendUnderTest(const BackendUnderTest&) = delete;
  BackendUnderTest& operator=(const BackendUnderTest&) = delete;

  absl::Status Prepare(Needs needs);       // calls Load(), Start() and Open() as far as needed
  absl::Status Load();                     // opens the library and gets its table
  absl::Status Start();                    // starts the backend and lists the devices
  absl::Status Open(size_t position = 0);  // opens the position-th usable device as device()
  void Close();
  void Stop();

  const std::string& path() const { return path_; }
  const Given& given() const { return given_; }
  CheckReporter& reporter() { return reporter_; }
  void At(std::string_view where) { reporter_.At(where); }
  mge_plugin_query_fn query() const { return query_; }
  const mge_plugin& plugin() const { return *plugin_; }
  KitHost& host() { return *host_; }
  const std::vector<DeviceDescription>& devices() const { return devices_; }  // the usable devices
  const DeviceDescription& description() const { return devices_[position_]; }
  mge_device* device() const { return device_; }
  const HostState& before() const { return before_; }  // the state before the library was opened
  int64_t device_memory_used() const;                  // bytes used by all programs; 0: unknown, or memory of the host
  bool host_accessible() const { return description().flags & MGE_DEVICE_HOST_ACCESSIBLE; }

 private:
  absl::StatusOr<std::vector<std::string>> Values() const;  // values of the declared settings, as the backend gets them
  std::string WhyNoDevice() const;

  std::string path_;
  const Given& given_;
  CheckReporter& reporter_;
  void* library_ = nullptr;
  mge_plugin_query_fn query_ = nullptr;
  const mge_plugin* plugin_ = nullptr;
  std::unique_ptr<KitHost> host_;
  std::vector<DeviceDescription> devices_;
  std::string unusable_;  // the listed devices that cannot be used, with the reasons
  HostState before_;
  size_t position_ = 0;
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

// Reads the identity note of a file. Returns Broken() if there is none or it is invalid.
absl::StatusOr<NoteReading> NoteOf(const std::string& path);

// Converts the result of a call to OK or Broken("WHAT failed: text (CODE)"). Returns WithoutMemory() if the call reports,
// with a text, an allocation failure that the kit has caused.
absl::Status Answer(mge_code code, const mge_error& error, std::string_view what);
// Calls f(mge_error*) inside Side::kBackend and converts its result. f must only call the backend. An exception is Broken().
template <typename F>
absl::Status Call(std::string_view what, F&& f) {
  mge_error error;
  try {
    mge_code code = InBackend(what, [&] { return f(&error); });
    return Answer(code, error, what);
  } catch (const std::exception& e) {
    return Broken(fmt::format("{} throws an exception, which the contract forbids: {}", what, e.what()));
  } catch (...) {
    return Broken(fmt::format("{} throws, which the contract forbids", what));
  }
}
// Returns Broken() unless f(mge_error*) fails with a text.
template <typename F>
absl::Status MustRefuse(std::string_view what, F&& f) {
  mge_error error;
  if (f(&error) == MGE_OK) return Broken(fmt::format("{} was accepted; an error is required", what));
  if (error.text.empty()) return Broken(fmt::format("{} was refused without a text", what));
  return absl::OkStatus();
}

// Converts a value to the form that the backend gets: booleans as 1 or 0, sizes in bytes. The message of an error continues
// the sentence "NAME = TEXT ...".
absl::StatusOr<std::string> PlainSetting(const mge_setting& setting, std::string_view text);

// The listed devices.
struct DeviceList {
  std::vector<DeviceDescription> devices;  // includes unusable devices; texts are empty if one of a device is invalid
  std::string fault;                       // the first violation of the rules in a description; "" if there is none
};
// Lists the devices of a started backend and checks their descriptions. `classes` (optional) are the allowed classes.
absl::StatusOr<DeviceList> ListDevices(const mge_plugin& plugin, const std::vector<std::string>* classes = nullptr);

}  // namespace mge::conform
