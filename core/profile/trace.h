// SPDX-License-Identifier: Apache-2.0
// Export of a profile as a trace for the viewers of Chrome and Perfetto.
#pragma once

#include <string>

#include "core/profile/profile.h"

namespace mge {

// Returns JSON in Chrome's trace-event format. Each thread that called runs is shown as a process. Its first row has the
// nested runs, plans and steps. A further row per worker of the compute pool shows the steps in which the worker took part.
// Each device with queues is a process, too, with a row per queue, and an arrow leads from the calling thread to each copy.
// There, the length of a step is the device's time if the backend has stamps. Samples of memory are counters. Without
// `calls`, runs, plans and planning are left out.
std::string TraceText(const Recording& recording, bool calls = true);

}  // namespace mge
