// SPDX-License-Identifier: Apache-2.0
// Opens an accepted file, checks its table, starts the backend, and asks which devices it drives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/plugin/discovery.h"
#include "core/plugin/host_services.h"
#include "core/plugin/tables.h"
#include "mge/plugin.h"

namespace mge {

// A device as its backend describes it; texts copied and bounded.
struct DeviceDescription {
  uint32_t index = 0;
  std::string class_name;
  std::string name;
  std::string fingerprint;
  std::string device_class;
  std::string reason;
  uint32_t score = 0;
  uint32_t flags = 0;
  uint64_t memory_total = 0;
  std::string driver = {};
  uint64_t max_allocation = 0;  // bytes of one slab of class DEVICE; 0: no limit
};

// A started backend. stop() is called when the last owner lets go; the library stays mapped for the life of the process.
// Shared, because a library holds one host table: two runtimes of one process use one started backend.
class Backend {
 public:
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  const std::string& path() const { return path_; }          // "built-in" for a table of the core itself
  const std::string& build() const { return build_; }        // BuildOf() its file; empty for the core itself
  const mge_plugin& plugin() const { return tables_->plugin(); }  // as this host knows it
  const mge_host* host() const { return services_->table(); }
  HostServices& services() { return *services_; }
  const std::vector<DeviceDescription>& devices() const { return devices_; }
  // A setting of the backend has another value from now on, for every runtime that shares it. Any thread.
  void Set(std::string_view key, std::string value);
  bool InForkedChild() const;  // of the process that started it

  // A backend whose table is part of the core. `classes` are those that its devices may have.
  static absl::StatusOr<std::shared_ptr<Backend>> FromTable(const mge_plugin* plugin, std::vector<std::string> classes,
                                                           const ComputeFunctions& compute);

 private:
  friend std::shared_ptr<Backend> LoadBackend(const FoundPlugin& found, const ComputeFunctions& compute,
                                              const DeclareSettings& settings, const Logger& logger, PluginFile& file);
  Backend() = default;

  std::string name_, version_, path_, build_;
  std::unique_ptr<const BackendTables> tables_;
  std::unique_ptr<HostServices> services_;
  std::vector<DeviceDescription> devices_;
  int started_in_ = 0;  // process id
};

// Writes the verdict into `file`; nullptr unless it is kLoaded. Serialised within the process.
std::shared_ptr<Backend> LoadBackend(const FoundPlugin& found, const ComputeFunctions& compute,
                                     const DeclareSettings& settings, const Logger& logger, PluginFile& file);

// Checks a plugin's table against the contract: "" or a sentence that names the table and the slot.
std::string WhyTableIsBad(const mge_plugin& plugin);

}  // namespace mge
