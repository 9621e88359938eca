// SPDX-License-Identifier: Apache-2.0
// Vetoes: the rewrites that a backend forbids for models on its devices, and those for which neither it nor a setting asks.
#pragma once

#include <span>
#include <string>

#include "core/base/status.h"
#include "core/plan/plan_context.h"

namespace mge {

// Returns `names`, the rewrites that the devices' backends forbid, those rewrites on request for which the first device's
// backend does not ask, and those that the settings do not want. Opens devices whose backend has such a rule. Fails if the
// first device fails.
absl::StatusOr<SkippedNames> WithVetoes(std::vector<std::string> names, std::span<Device* const> devices,
                                        const Snapshot& settings);

}  // namespace mge
