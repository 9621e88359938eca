// SPDX-License-Identifier: Apache-2.0
// The picture of a profile.
#pragma once

#include <string>

#include "core/html/page.h"

namespace mge::html {

// The rates that a device can reach: the limits of a roofline. 0: unknown.
struct Roofs {
  double gflops_per_s = 0, gb_per_s = 0;
};

// Draws the reports "mge.profile/1" and "mge.timeline/1" as the body of a page: a timeline with a row for each queue and thread,
// the operators, the roofline of the steps, and the slowest steps. Without `roofs`, the fastest steps are the limits.
std::string ProfileBody(const Json& profile, const Json& timeline, const Roofs& roofs = {});

}  // namespace mge::html
