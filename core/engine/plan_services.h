// SPDX-License-Identifier: Apache-2.0
// The services of a runtime for planning: the compute pool, files of the choice of kernels, and a store of instances for each plan.
#pragma once

#include <memory>

#include "core/plan/plan_context.h"

namespace mge {

class Runtime;  // core/engine/runtime.h

// Returns the services of a runtime, which must outlive the planning. Reads settings of the runtime.
std::shared_ptr<const PlanServices> MakePlanServices(Runtime& runtime, SelectionTools selection);

}  // namespace mge
