// SPDX-License-Identifier: Apache-2.0
// How kernels are chosen, from settings: the parts that a runtime shares between its sessions, and those of one session.
#pragma once

#include <memory>
#include <string>

#include "core/env/environment.h"
#include "core/env/snapshot.h"
#include "core/plan/selection.h"

namespace mge {

struct PlanContext;  // core/plan/program.h

// Of a runtime.
struct RuntimeSelection {
  std::shared_ptr<TuningCache> cache;
  std::shared_ptr<const FrozenSelection> frozen;  // nullptr: none
  std::shared_ptr<SelectionRecorder> recorder;    // nullptr: nothing is written
};
// Reads the frozen selection. kConfigFile.
absl::StatusOr<RuntimeSelection> MakeSelection(const Snapshot& settings, const std::string& user_cache_directory,
                                               const Logger& logger);

// $XDG_CACHE_HOME, else .cache in $HOME, else empty.
std::string UserCacheDirectory(const Environment& environment);

// Fills what the strategy decides: mode, attributes, tools. kBadSetting for a strategy that contradicts itself.
absl::Status ApplyStrategy(const Snapshot& settings, const RuntimeSelection& runtime, const Logger& logger,
                           PlanContext& out);

}  // namespace mge
