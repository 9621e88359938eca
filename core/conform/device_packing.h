// SPDX-License-Identifier: Apache-2.0
// The check of mge_kernel_api.prepack_on.
#pragma once

#include <cstdint>
#include <string>

#include "core/conform/kernel_run.h"

namespace mge::conform {

// Packs `source` with prepack_on and compares with `form`, the result of prepack. Returns the fault as a sentence; "" if
// there is none, if the backend has no queues, or if the slot is missing or returns MGE_UNIMPLEMENTED. Overwrites lane 0 of
// the bench.
absl::StatusOr<std::string> FaultOfDevicePacking(Bench& bench, mge_kernel* kernel, uint32_t input, const Bytes& source,
                                                 const Bytes& form);

}  // namespace mge::conform
