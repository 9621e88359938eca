// SPDX-License-Identifier: Apache-2.0
// Finds the memory that each step reads and writes, as variables of the dependency engine.
//
// If each step is an operation of the engine, the engine derives their order from variables. There is one variable per
// buffer. Buffers may share memory one after the other, so the first step that uses a buffer also writes the variables of
// the earlier buffers in the same memory.
#pragma once

#include <vector>

#include "core/plan/memory/buffers.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// Returns the accesses of each step. The steps are in the order of execution. There is a variable for each buffer of
// `memory`, with the same index.
std::vector<StepAccess> FindAccesses(const Schedule& schedule, const MemoryPlan& memory, const std::vector<Step>& steps);

// Sets the first and last steps of memory.placed. The steps are in the order of execution.
void FindLives(const Schedule& schedule, const std::vector<Step>& steps, MemoryPlan& memory);

}  // namespace mge
