// SPDX-License-Identifier: Apache-2.0
// Durations as users read them.
#pragma once

#include <string>

namespace mge {

// Returns "0.45 us", "12.3 us", "4.56 ms" or "7.01 s" for a number of microseconds.
std::string DurationText(double us);

}  // namespace mge
