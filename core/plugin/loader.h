// SPDX-License-Identifier: Apache-2.0
// Loader: opens an accepted file, checks its tables, starts the backend and lists its devices.
//
// Algorithm of LoadBackend():
//   1. Claim: find the library in the process-wide record (library_record.h) by file identity. If another runtime has started
//      it, share it. If another thread is starting or stopping it, wait.
//   2. Open: check that the file has not changed since discovery, dlopen() it, and check again.
//   3. Start: call mge_plugin_query(), copy the tables (tables.h), and compare them with the identity note and the contract.
//      Pass the settings, call start(), and enumerate the devices.
//   4. Publish: share the backend with other runtimes.
// A failure at any step undoes the earlier steps and becomes a verdict. A library is never unmapped, because threads and
// handlers of a driver may outlive stop(). No code of a backend runs while the record is locked.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/plugin/device_listing.h"
#include "core/plugin/discovery.h"
#include "core/plugin/host_services.h"
#include "core/plugin/tables.h"
#include "mge/plugin.h"

namespace mge {

// The services of a runtime for the start of its backends.
struct StartContext {
  ComputeFunctions compute = {};
  DeclareSettings settings = {};  // empty: the settings of backends have their default values
  CoreSettings core = {};         // empty: backends find no setting of the core
  BlobCacheOptions blobs = {};
  Logger logger = Logger();
  std::chrono::duration<double> start_limit{0};  // for the start of each backend; 0: none
  Quarantine quarantine = {};                    // where a start that ends the process may be recorded
};

// A started backend, shared by the runtimes of a process. stop() is called when the last owner releases it. The library
// stays mapped until the process ends. Thread-safe.
class Backend {
 public:
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  const std::string& path() const { return path_; }    // "built-in" for a table of the core itself
  const std::string& build() const { return build_; }  // BuildOf() of its file; empty for a table of the core itself
  const mge_plugin& plugin() const { return tables_->plugin(); }  // the host's copy of the table
  const mge_host* host() const { return services_->table(); }
  HostServices& services() { return *services_; }
  const std::vector<DeviceDescription>& devices() const { return devices_; }
  // Sets a setting of the backend for every runtime that shares it. An unknown key is ignored.
  void Set(std::string_view key, std::string value);
  bool InForkedChild() const;  // whether this process is a forked child of the one that started the backend
  // Returns whether this process is a forked child and a device of the backend does not survive a fork.
  bool Orphaned() const;

  // Starts a backend whose table is part of the core. `classes` are the allowed classes of its devices. Fails with
  // kPluginRefused or kOutOfMemory.
  static absl::StatusOr<std::shared_ptr<Backend>> FromTable(const mge_plugin* plugin, std::vector<std::string> classes,
                                                            const ComputeFunctions& compute);

 private:
  friend class BackendLoader;  // loader.cc
  Backend() = default;

  std::string name_, version_, path_, build_;
  std::unique_ptr<const BackendTables> tables_;
  std::unique_ptr<HostServices> services_;
  std::vector<DeviceDescription> devices_;
  int started_in_ = 0;  // process id
};

// Loads and starts the backend of an accepted file, or shares the one that is already started. In a forked child, starts a
// backend again whose devices do not survive a fork. Writes the verdict into `file`. Returns nullptr unless the verdict is
// kLoaded. Thread-safe. If another thread is starting or stopping the same library, waits for it.
std::shared_ptr<Backend> LoadBackend(const FoundPlugin& found, const StartContext& context, PluginFile& file);

// Opens the library of an accepted file without starting the backend. LoadBackend() then starts it, in any thread. Returns
// false if static objects of the library threw: every later call for any library must then come from this thread, because
// it holds a lock of the dynamic linker for ever.
bool OpenLibrary(const FoundPlugin& found, const StartContext& context);

// Checks a plugin's table against the contract. Returns "" or a sentence that names the table and the function.
std::string WhyTableIsBad(const mge_plugin& plugin);

}  // namespace mge
