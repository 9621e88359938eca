// SPDX-License-Identifier: Apache-2.0
// Rules that every plan must keep, whatever it computes.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace mge {

// Returns the violations of these rules, one sentence each:
//   - two buffers of one arena that are alive at the same time do not overlap;
//   - each arena and each operand of a kernel begins at a multiple of its device's alignment;
//   - each step reads the value that it wants: nothing has overwritten it in the order of the steps;
//   - two steps that use the same bytes, one of them writing, are ordered by segments, waits and signals;
//   - if each step is an operation of the engine, the same holds for the order that their variables give;
//   - a signal is enqueued before every wait for it, and the last segment of each queue signals.
// Considers memory in arenas, and outputs. Kernels must belong to fake backends.
std::vector<std::string> FaultsOf(const Plan& plan);

}  // namespace mge
