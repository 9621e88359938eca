// SPDX-License-Identifier: Apache-2.0
// The backend under test, loaded into this (child) process and driven through its table alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "core/conform/allocations.h"
#include "core/conform/check.h"
#include "core/conform/host_state.h"
#include "core/conform/settings.h"
#include "core/conform/witness.h"
#include "core/plugin/host_services.h"
#include "core/plugin/loader.h"
#include "core/plugin/note.h"
#include "fmt/format.h"
#include "mge/plugin.h"

namespace mge::conform {

// What the backend gets as its host: the core's services, with allocations that fail on demand.
class KitHost {
 public:
  explicit KitHost(std::vector<std::string> settings);
  const mge_host* table() const { return &table_; }
  int64_t outstanding() const { return inner_.allocations(); }  // blocks taken and not released
  uint64_t requests() const { return requests_; }
  // The n-th request from now on fails (1 is the next); 0 for none.
  void FailAt(uint64_t n) { requests_ = 0, fail_at_ = n; }

 private:
  HostServices inner_;
  std::atomic<uint64_t> requests_{0}, fail_at_{0};
  mge_host table_;
};

class Subject {
 public:
  Subject(std::string path, const Given& given, Witness& witness)
      : path_(std::move(path)), given_(given), witness_(witness) {}
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  absl::Status Prepare(Needs needs);
  absl::Status Load();                     // opens the library and asks for its table
  absl::Status Start();                    // and lists the devices
  absl::Status Open(size_t position = 0);  // the position-th usable device becomes device()
  void Close();
  void Stop();

  const std::string& path() const { return path_; }
  const Given& given() const { return given_; }
  Witness& witness() { return witness_; }
  void At(std::string_view where) { witness_.At(where); }
  mge_plugin_query_fn query() const { return query_; }
  const mge_plugin& plugin() const { return *plugin_; }
  KitHost& host() { return *host_; }
  const std::vector<DeviceDescription>& devices() const { return devices_; }  // the usable ones
  const DeviceDescription& description() const { return devices_[position_]; }
  mge_device* device() const { return device_; }
  const HostState& before() const { return before_; }  // the library was opened
  int64_t device_memory_used() const;  // by all who use the device; 0: not known
  bool host_accessible() const { return description().flags & MGE_DEVICE_HOST_ACCESSIBLE; }
  // For checks that try values, none to end that; while stopped.
  void Try(SettingValues values) {
    tried_ = std::move(values);
    host_.reset();
  }

 private:
  absl::StatusOr<std::vector<std::string>> Values() const;  // of the declared settings, as the backend gets them
  std::string WhyNoDevice() const;

  std::string path_;
  const Given& given_;
  SettingValues tried_;
  Witness& witness_;
  void* library_ = nullptr;
  mge_plugin_query_fn query_ = nullptr;
  const mge_plugin* plugin_ = nullptr;
  std::unique_ptr<KitHost> host_;
  std::vector<DeviceDescription> devices_;
  std::string unusable_;  // devices that are listed, but cannot be used, and why
  HostState before_;
  size_t position_ = 0;
  mge_device* device_ = nullptr;
  bool started_ = false;
};

// Broken() if the file has no identity note that can be read.
absl::StatusOr<NoteReading> NoteOf(const std::string& path);

// OK, or Broken("WHAT failed: text (CODE)"); WithoutMemory() where an allocation has failed, and this says so.
absl::Status Answer(mge_code code, const mge_error& error, std::string_view what);
// Calls f(mge_error*), which does nothing but call the backend.
template <typename F>
absl::Status Call(std::string_view what, F&& f) {
  mge_error error;
  try {
    mge_code code = InBackend(what, [&] { return f(&error); });
    return Answer(code, error, what);
  } catch (const std::exception& e) {
    return Broken(fmt::format("{} throws an exception, which none may do across the boundary: {}", what, e.what()));
  } catch (...) {
    return Broken(fmt::format("{} throws, which none may do across the boundary", what));
  }
}
// Broken unless f(mge_error*) answers an error, with a text.
template <typename F>
absl::Status MustRefuse(std::string_view what, F&& f) {
  mge_error error;
  if (f(&error) == MGE_OK) return Broken(fmt::format("{} was accepted; an error is due", what));
  if (error.text.empty()) return Broken(fmt::format("{} was refused without a text", what));
  return absl::OkStatus();
}

// A value as the host hands it to the backend: truth as 1 or 0, sizes in bytes. An error's message follows on "NAME = TEXT".
absl::StatusOr<std::string> PlainSetting(const mge_setting& setting, std::string_view text);

struct DeviceList {
  std::vector<DeviceDescription> devices;  // unusable ones too; without texts where one of them cannot be read
  std::string fault;                       // how a description breaks the rules; "" if none does
};
// `classes`: those of the identity note, for a fault.
absl::StatusOr<DeviceList> ListDevices(const mge_plugin& plugin, const std::vector<std::string>* classes = nullptr);

}  // namespace mge::conform
