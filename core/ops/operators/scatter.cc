// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/scatter.h"

#include "core/ops/gradient.h"

namespace mge::op_scatter {

MGE_OP(scatter) = {.name = "Scatter",
                   .doc = "An older name of ScatterElements.",
                   .inputs = {{"data"}, {"indices", kIndex}, {"updates"}},
                   .outputs = {{"output"}},
                   .attrs = {AxisOf({"axis", 0, "the axis"})},
                   .infer = InferScatterElements,
                   .eval = EvalScatterElements,
                   .gradient = ScatterElementsGradient,
                   .in_place = {{0, 0}},
                   .since = 9,
                   .until = 10,
                   .examples = {"(T[4,4], int64[1,4]<0,2,1,3>, T[1,4])"}};

}  // namespace mge::op_scatter
