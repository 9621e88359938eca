// SPDX-License-Identifier: Apache-2.0
// The runtime: settings, backends, devices and the compute pool. Several may live in one process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/compute_pool.h"
#include "core/engine/deadlines.h"
#include "core/engine/dependency_engine.h"
#include "core/engine/select.h"
#include "core/env/registry.h"
#include "core/plugin/devices.h"

namespace mge {

struct RuntimeOptions {
  Sources sources = {};
  std::vector<std::string> plugin_directories = {};  // before those of the settings; absolute
  bool built_in_plugins = true;                      // search mge/plugins beside the library
  Logger logger = Logger();
};

// Where a runtime of these options looks for backends, and what it lets in.
struct PluginSearch {
  std::vector<PluginDirectory> directories;  // in order of precedence
  PluginRules rules;
};
// Asks the settings that `registry` was made of; what is wrong with them is an error.
absl::StatusOr<PluginSearch> PluginSearchOf(const RuntimeOptions& options, const Environment& environment,
                                            const Registry& registry);

// Safe on any thread. Sessions hold a reference.
class Runtime {
 public:
  static absl::StatusOr<std::shared_ptr<Runtime>> Create(RuntimeOptions options);

  Registry& registry() { return *registry_; }
  Devices& devices() { return *devices_; }
  ComputePool& pool() { return *pool_; }
  DependencyEngine& engine() { return *engine_; }  // of asynchronous runs
  Deadlines& deadlines() { return deadlines_; }
  const RuntimeSelection& selection() const { return selection_; }
  const Logger& logger() const { return registry_->logger(); }

  // Threads that a run may use now: the setting, else what the process may use.
  uint32_t Threads() const;

  // The devices of a call ("" for none named): call, else the scope of the thread, else the default device, else xpux.
  absl::StatusOr<Resolution> ResolveDevice(std::string_view call, const Snapshot& settings) const;

  // Changes what MGE_DEFAULT_DEVICE set, for sessions made later.
  absl::Status SetDefaultDevice(std::string_view spec);

 private:
  Runtime() = default;
  std::shared_ptr<ComputePool> pool_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Devices> devices_;
  RuntimeSelection selection_;
  Deadlines deadlines_;
  std::unique_ptr<DependencyEngine> engine_;  // last: its operations use all the others
};

}  // namespace mge
