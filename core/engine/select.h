// SPDX-License-Identifier: Apache-2.0
// The files and helpers of the choice of kernels, from settings. All sessions of a runtime share them.
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

// Creates the tools, but for the workers, from settings and reads the selection file. Fails with kConfigFile if a selection
// file is invalid.
absl::StatusOr<SelectionTools> MakeSelection(const Snapshot& settings, const std::string& user_cache_directory,
                                             const Logger& logger);

// Returns the workers for select.profiling_timeout_seconds, or nullptr if it is unlimited. They use the settings of `registry`, which must
// outlive them, and search these directories for backends. `program` is the path of mge-worker.
std::shared_ptr<TimingWorkers> MakeTimingWorkers(const Registry& registry, std::string program,
                                                 std::span<const PluginDirectory> directories);

// Returns $XDG_CACHE_HOME, else .cache in $HOME, else "". Ignores paths that are not absolute.
std::string UserCacheDirectory(const Environment& environment);

}  // namespace mge
