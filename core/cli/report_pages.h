// SPDX-License-Identifier: Apache-2.0
// Pictures of reports, as the bodies of pages (html.h).
#pragma once

#include <string>

#include "core/cli/common.h"

namespace mge::cli {

// Draws the report "mge.plan/1": a row for each step, in the column of its device, and the values that flow between steps.
std::string PlanPicture(const Json& plan);

// Draws the report "mge.memory/1": each buffer of the arenas as a rectangle, over the steps and bytes that it occupies.
std::string MemoryPicture(const Json& memory);

}  // namespace mge::cli
