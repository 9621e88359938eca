// SPDX-License-Identifier: Apache-2.0
// The picture of a plan.
#pragma once

#include <string>

#include "core/html/page.h"

namespace mge::html {

// Draws the report "mge.plan/1" as the body of a page: a row for each step, in the column of its device, and the values that
// flow between steps.
std::string PlanBody(const Json& plan);

}  // namespace mge::html
