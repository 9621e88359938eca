// SPDX-License-Identifier: Apache-2.0
// Durations as text with a suitable unit.
#pragma once

#include <string>

namespace mge {

// Formats a duration in microseconds, for example as "0.45 us", "12.3 us", "4.56 ms" or "7.01 s".
std::string DurationText(double us);

}  // namespace mge
