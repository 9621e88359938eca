// SPDX-License-Identifier: Apache-2.0
// The page of `mge doctor --html`, for a report of a fault.
#pragma once

#include <string>

#include "core/cli/common.h"

namespace mge::cli {

// Returns facts about the build, the system and the processor: a list of objects with the texts "label" and "value".
Json SystemFacts();

// Draws the report "mge.doctor/1" as the body of a page.
std::string DoctorBody(const Json& report);

}  // namespace mge::cli
