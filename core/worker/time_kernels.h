// SPDX-License-Identifier: Apache-2.0
// The side of mge-worker in the timing of kernels (core/plan/kernels/timing_workers.h).
#pragma once

#include <string_view>

namespace mge::worker {

// Measures the candidates of a request (timing_request.h) and writes the lines of its report to the descriptor `report`.
// Returns the exit code.
int TimeKernels(std::string_view request, int report);

}  // namespace mge::worker
