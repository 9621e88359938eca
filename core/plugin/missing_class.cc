// SPDX-License-Identifier: Apache-2.0
// The error for a device of a class that no loaded backend offers.
#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/devices.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

// Returns the variable of a setting without its prefix.
std::string AsVariable(std::string key) {
  for (char& c : key) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return key;
}

// Returns the fix for a device that a setting of the backend would enable, or "". The setting is the number of devices, or
// NAME.gpu if the backend has devices but none is numbered as a GPU.
std::string HowToOffer(const Backend& backend, bool has_devices, const DeviceName& device) {
  const mge_plugin& plugin = backend.plugin();
  const bool gpu = device.cls == "gpu";
  for (uint64_t i = 0; i < plugin.setting_count; ++i) {
    const mge_setting& s = *plugin.settings[i];
    const std::string key = CopyText(s.key);
    if (gpu && has_devices && s.type == MGE_SETTING_BOOL && key == backend.name() + ".gpu") {
      return fmt::format("make the devices of {0} available as gpu: set {1}=true or MGE_{2}=1", backend.name(), key,
                         AsVariable(key));
    }
    if (!gpu && s.type == MGE_SETTING_INT && CopyText(s.unit) == "devices") {
      return fmt::format("set the number of devices: {0}={2} or MGE_{1}={2}", key, AsVariable(key),
                         std::max(device.number, 0) + 1);
    }
  }
  return {};
}

}  // namespace

// Explains why no device of a class exists: each function below adds what one source knows to `why`, and sets `fix` if it
// knows what to do. A later source replaces the explanation of an earlier one only if it is certain.
struct Devices::MissingClass {
  const Devices& devices;
  const DeviceName& name;
  const std::string cls = std::string(ClassOf(name));
  const bool any = cls == "xpu";  // any class would do
  const List known = devices.Known();
  std::string why = {}, fix = {};

  const std::vector<PluginFile>& files() const { return devices.backends_->files(); }
  bool Drives(const PluginFile& file) const { return absl::c_linear_search(file.classes, cls); }
  bool IsTransport(const PluginFile& file) const {
    return absl::c_any_of(devices.transports(), [&](const FoundPlugin& found) { return found.file.path == file.path; });
  }

  // A backend that has too little memory to start may drive the class.
  /*nullable*/ const PluginFile* OutOfMemory() const {
    for (const PluginFile& file : files()) {
      if (file.code == VerdictCode::kOutOfMemory && (any || Drives(file))) return &file;
    }
    return nullptr;
  }

  void ExplainDevices() {
    why = any ? "no backend offers a device that xpu may choose"
              : fmt::format("no backend that drives devices of class '{}' is loaded", cls);
    if (!any) return;
    for (const auto& d : known) {
      if (!d->usable()) why += fmt::format("; {}: {}", d->name(), d->reason());
    }
    for (const PluginFile& file : files()) {
      if (file.devices == 0) why += fmt::format("; backend '{}' is loaded and lists no device on this machine", file.name);
    }
  }

  // Suggests the nearest class if the class is unknown. A short one may be the class of a backend that is not installed. A long
  // one is treated as a typing error: then returns that error.
  absl::Status SuggestClass(std::string_view where) {
    const std::span<const std::string_view> well_known = WellKnownDeviceClasses();
    if (absl::c_linear_search(well_known, cls)) return absl::OkStatus();
    std::vector<std::string> candidates(well_known.begin(), well_known.end());
    for (const auto& d : known) candidates.push_back(d->class_name());
    const std::string_view nearest = Nearest(cls, candidates);
    if (nearest.empty()) return absl::OkStatus();
    DeviceName meant = name;
    meant.cls = nearest;
    meant.text.clear();
    if (meant.number == kLowestUsable && meant.cls != "xpu" && !name.Written().ends_with('x')) meant.number = 0;
    if (cls.size() > 3) {
      return Fail(errors::kBadDeviceName, fmt::format("'{}' does not name a device", name.Written()),
                  {.what = fmt::format("no backend offers devices of class '{}'.{}", cls, DidYouMean(meant.ToString())),
                   .where = std::string(where),
                   .fix = fmt::format("write {}, or see `mge devices`", meant.ToString())});
    }
    why += "." + DidYouMean(meant.ToString());
    fix = fmt::format("write {}", meant.ToString());
    return absl::OkStatus();
  }

  // Backends that drive the class are loaded, so that is no reason: they have no device of this machine to offer.
  void ExplainLoadedBackends() {
    std::string idle;
    for (const PluginFile& file : files()) {
      if (file.verdict != Verdict::kLoaded || !Drives(file)) continue;
      idle += fmt::format("{}backend '{}' is loaded and {}", idle.empty() ? "" : "; ", file.name,
                          file.devices == 0 ? "lists no device on this machine" : "finds no such device on this machine");
      for (const std::shared_ptr<Backend>& backend : devices.backends_->running()) {
        if (backend->name() != file.name) continue;
        const bool some = absl::c_any_of(known, [&](const auto& d) { return &d->backend() == backend.get(); });
        if (std::string how = HowToOffer(*backend, some, name); !how.empty()) fix = std::move(how);
      }
    }
    if (!idle.empty()) why = std::move(idle);
  }

  // Files that were not loaded may drive the class. Only the first one is named of those whose classes are unknown.
  void ExplainOtherFiles() {
    int unknown = 0;
    for (const PluginFile& file : files()) {
      if (file.verdict == Verdict::kLoaded || IsTransport(file)) continue;
      const bool nameless = file.classes.empty();
      if (nameless && unknown++ > 0) continue;
      if (!nameless && !any && !Drives(file)) continue;
      why += fmt::format("; {} is {}: {}", file.path, VerdictName(file.verdict),
                         file.reason.empty() ? file.warning : file.reason);
      if (fix.empty()) fix = file.fix;
    }
    if (unknown > 1) why += fmt::format("; {} more files were not loaded, see `mge plugins`", unknown - 1);
  }

  std::string InstallABackend() const {
    std::vector<std::string> searched;
    for (const PluginDirectory& directory : devices.directories()) searched.push_back(directory.path);
    return searched.empty() ? "install a backend for it, in a directory that MGE_PLUGIN_PATH names"
                            : fmt::format("install a backend for it (searched: {})", fmt::join(searched, ", "));
  }
};

absl::Status Devices::NoSuchClass(const DeviceName& name, std::string_view where) const {
  MissingClass missing = {*this, name};
  if (const PluginFile* file = missing.OutOfMemory()) {
    return Fail(errors::kOutOfMemory, fmt::format("device '{}' cannot be used", name.Written()),
                {.what = fmt::format("{}: {}", file->path, file->reason), .where = std::string(where), .fix = file->fix});
  }
  missing.ExplainDevices();
  MGE_RETURN_IF_ERROR(missing.SuggestClass(where));
  missing.ExplainLoadedBackends();
  missing.ExplainOtherFiles();
  if (missing.fix.empty()) missing.fix = missing.InstallABackend();
  return Unusable(name, std::move(missing.why), where, std::move(missing.fix));
}

}  // namespace mge
