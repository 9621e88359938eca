// SPDX-License-Identifier: Apache-2.0
// The dimensions of a Resize, and the places in the input that its outputs are computed from.
#pragma once

#include <string_view>
#include <vector>

#include "mge/plugin/problems/resize.hpp"

namespace mge::cpu {

// Reads all dimensions. Fails if a kernel here supports no such Resize.
Result ReadResizeAxes(const Node& n, std::vector<ResampledAxis>* out);

// Returns the position of output `at` in the input, in elements.
using SourceFn = double (*)(const ResampledAxis& a, double at);

// Returns the function of the node's coordinate_transformation_mode, or null for one that is not supported.
SourceFn FindSource(const Node& n);

// Returns the position of output `i` in the input. It is at most one input's length away from it.
double PlaceOf(SourceFn source, const ResampledAxis& a, int64_t i);

}  // namespace mge::cpu
