// SPDX-License-Identifier: Apache-2.0
// The text of a plan whose kernels belong to fake backends. README.md of this folder describes its form.
#pragma once

#include <span>
#include <string>

#include "core/plan/plan.h"

namespace mge {

// Returns the sections of the plan and of the plans of its bodies. An empty `shown` stands for the usual sections.
std::string PrintPlan(const Plan& plan, std::span<const std::string> shown);

}  // namespace mge
