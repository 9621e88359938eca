// SPDX-License-Identifier: Apache-2.0
// Plans a graph on fake devices.
#pragma once

#include <string>

namespace mge {

// Returns the plan, or the plans, of a graph as text (print_plan.h), or the error as a user sees it. `setup` and `graph` are
// the first two parts of a *.plan file.
std::string MakePlanText(const std::string& setup, const std::string& graph);

}  // namespace mge
