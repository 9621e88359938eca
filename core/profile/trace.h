// SPDX-License-Identifier: Apache-2.0
// A profile as a trace, which the viewers of Chrome and Perfetto open.
#pragma once

#include <string>

#include "core/profile/profile.h"

namespace mge {

// JSON in Chrome's trace-event format. Each thread that called runs is a process there: its first row has runs, plans and steps
// within each other, and one row for each worker of the compute pool shows when it helped in which step.
std::string TraceText(const Recording& recording);

}  // namespace mge
