// SPDX-License-Identifier: Apache-2.0
// The choice of kernels, from settings: the parts that all sessions of a runtime share, and the parts of one session.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/env/environment.h"
#include "core/env/registry.h"
#include "core/env/snapshot.h"
#include "core/plan/kernels/selection.h"
#include "core/plugin/discovery.h"

namespace mge {

struct PlanContext;  // core/plan/program.h
class FallbackLog;   // core/plan/fallback_log.h

// The parts that all sessions of a runtime share.
struct RuntimeSelection {
  std::shared_ptr<TuningCache> cache;
  std::shared_ptr<const FrozenSelection> frozen;  // nullptr: select.frozen is not set
  std::shared_ptr<SelectionRecorder> recorder;    // nullptr: select.freeze is not set
  std::shared_ptr<FallbackLog> fallbacks;         // nullptr: log.storage_fallback is off
  std::shared_ptr<TimingWorkers> workers;         // nullptr: select.profiling_timeout is 0
};
// Creates the parts from settings and reads the frozen selection. Fails with kConfigFile if a selection file is invalid.
absl::StatusOr<RuntimeSelection> MakeSelection(const Snapshot& settings, const std::string& user_cache_directory,
                                               const Logger& logger);

// Returns the workers for select.profiling_timeout, or nullptr if it is 0. They use the settings of `registry`, which must
// outlive them, and search these directories for backends. `program` is the path of mge-worker.
std::shared_ptr<TimingWorkers> MakeTimingWorkers(const Registry& registry, std::string program,
                                                 std::span<const PluginDirectory> directories);

// Returns $XDG_CACHE_HOME, else .cache in $HOME, else "". Ignores paths that are not absolute.
std::string UserCacheDirectory(const Environment& environment);

// Sets the members of `out` that depend on the strategy: mode, attributes, tools. Fails with kBadSetting if the strategy
// contradicts itself.
absl::Status ApplyStrategy(const Snapshot& settings, const RuntimeSelection& runtime, const Logger& logger,
                           PlanContext& out);

}  // namespace mge
