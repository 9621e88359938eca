// SPDX-License-Identifier: Apache-2.0
// Broadcasting one operand to the shape of another.
#pragma once

#include <cstdint>
#include <span>

namespace mge {

// Returns true if `shape` can be broadcast to `target` without changing `target`. Unknown sizes always fit.
bool FitsBroadcastTo(std::span<const int64_t> shape, std::span<const int64_t> target);

}  // namespace mge
