// SPDX-License-Identifier: Apache-2.0
// The page of `mge doctor --html`, for a report of a fault.
#pragma once

#include <string>
#include <utility>

#include "core/cli/common.h"

namespace mge::cli {

// Returns facts about the build, the system and the processor: a list of objects with the texts "label" and "value".
Json SystemFacts();

// Returns a note on a backend that works but has no device, and what to do about it. Both are empty for every other row of
// "mge.doctor/1".
std::pair<std::string, std::string> NoteOnDevices(const Json& plugin);

// Draws the report "mge.doctor/1" as the body of a page.
std::string DoctorBody(const Json& report);

}  // namespace mge::cli
