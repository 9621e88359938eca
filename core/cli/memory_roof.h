// SPDX-License-Identifier: Apache-2.0
// The bandwidth of the host's memory.
#pragma once

namespace mge::cli {

// Measures how many bytes per second up to `threads` threads read together. Takes a fraction of a second on an idle machine. Returns 0 if
// there is no memory for that.
double MeasureReadBandwidth(int threads);

}  // namespace mge::cli
