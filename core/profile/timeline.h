// SPDX-License-Identifier: Apache-2.0
// The steps of one run over time, for a picture.
#pragma once

#include <string>

#include "core/profile/profile.h"

namespace mge {

// Returns the report "mge.timeline/1": the run of median length, with a row for each queue and for each thread that computed.
// Each span has the row, the label, the operator and the kernel of a step, and its begin and end in microseconds since the
// begin of the run. They are in the order in which they began; steps of a body lie within the step that runs it. Without a
// run, there are no rows.
std::string TimelineText(const Recording& recording);

}  // namespace mge
