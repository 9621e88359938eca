// SPDX-License-Identifier: Apache-2.0
// The runtime: settings, backends, devices and the compute pool. A process may have several runtimes.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/engine/compute_pool.h"
#include "core/engine/deadlines.h"
#include "core/engine/dependency_engine.h"
#include "core/engine/launch.h"
#include "core/engine/queue_limits.h"
#include "core/engine/run_streams.h"
#include "core/engine/shared_arena.h"
#include "core/env/needs.h"
#include "core/env/registry.h"
#include "core/plan/plan_context.h"
#include "core/plugin/devices.h"

namespace mge {

class ProcessGroup;  // core/engine/process_group.h

// The options of a runtime.
struct RuntimeOptions {
  Sources sources = {};                              // sources of settings
  std::vector<std::string> plugin_directories = {};  // absolute; searched before the directories of the settings
  bool built_in_plugins = true;                      // true: search mge/plugins beside the library
  std::string worker = {};                           // path of mge-worker; empty: in the folder mge/ beside the library
  Logger logger = Logger();
};

// The directories that a runtime searches for backends, and the rules by which it accepts a file.
struct PluginSearch {
  std::vector<PluginDirectory> directories;  // in order of precedence
  PluginRules rules;
};
// Returns the search for these options and the settings of `registry`. Fails if the allow list cannot be read.
absl::StatusOr<PluginSearch> PluginSearchOf(const RuntimeOptions& options, const Environment& environment,
                                            const Registry& registry);

// A runtime. Safe on any thread. Each session holds a reference.
class Runtime {
 public:
  // Reads the settings, finds the backends and starts the engine. Starts no backend. Fails if a setting is invalid,
  // the grammar of MGE_DEFAULT_DEVICE included.
  static absl::StatusOr<std::shared_ptr<Runtime>> Create(RuntimeOptions options);

  Registry& registry() { return *registry_; }
  Devices& devices() { return *devices_; }
  ComputePool& pool() { return *pool_; }
  DependencyEngine& engine() { return *engine_; }  // for asynchronous runs
  Deadlines& deadlines() { return deadlines_; }
  SharedArenas& shared_arenas() { return shared_arenas_; }
  const std::shared_ptr<const PlanServices>& plan_services() const { return plan_services_; }
  RunStreams& streams() { return streams_; }
  QueueLimits& queue_limits() { return *queue_limits_; }
  const Logger& logger() const { return registry_->logger(); }

  // Returns the variables of the process that the runtime was created with.
  const Environment& environment() const { return environment_; }

  // Returns the group of the processes that a launcher of MPI started. Joins it at the first call, which returns when all
  // processes have joined. Fails with kRankFailed, or with kUnsupportedFeature if there is no transport.
  absl::StatusOr<std::shared_ptr<ProcessGroup>> JoinProcesses(const Launch& launch, std::chrono::nanoseconds timeout);

  // Returns the number of threads that a run may use: the setting, else 1 for the naive engine, else the number that the
  // process may use.
  uint32_t Threads() const;

  // Starts all backends within plugin.start_timeout_seconds. Warns about those that take longer, and returns their names.
  std::vector<std::string> StartBackends();

  // Returns the names of the devices that ResolveDevice() chooses from.
  absl::StatusOr<DeviceSpec> Requested(std::string_view call, const Snapshot& settings) const;
  // Returns the devices for a call that names `call` ("": names none). The first of these that is set decides: the call, the
  // thread's scope, the default device, "xpux".
  absl::StatusOr<Resolution> ResolveDevice(std::string_view call, const Snapshot& settings) const;

  // Warns about settings that can do nothing, because another one is off. Says each sentence once.
  void WarnOfNeeds(const Snapshot& settings, NeedsOf part);

  // Changes the default device (MGE_DEFAULT_DEVICE) for sessions that are created later.
  absl::Status SetDefaultDevice(std::string_view spec);

 private:
  Runtime() = default;
  Environment environment_;
  std::shared_ptr<ComputePool> pool_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Devices> devices_;
  SharedArenas shared_arenas_;
  std::shared_ptr<const PlanServices> plan_services_;
  Deadlines deadlines_;
  RunStreams streams_;
  std::unique_ptr<QueueLimits> queue_limits_;
  std::mutex needs_mutex_;
  std::set<std::string> needs_;  // sentences of WarnOfNeeds(); guarded by needs_mutex_
  std::mutex processes_mutex_;
  std::shared_ptr<ProcessGroup> processes_;   // nullptr: not joined; guarded by processes_mutex_
  std::unique_ptr<DependencyEngine> engine_;  // last, so destroyed first: its operations use the other members
};

}  // namespace mge
