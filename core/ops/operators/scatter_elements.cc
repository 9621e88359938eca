// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/scatter.h"

namespace mge::op_scatter_elements {

MGE_OP(scatter_elements) = {.name = "ScatterElements",
                            .doc = "The data with elements set, or combined by `reduction`, at the indices.",
                            .inputs = {{"data"}, {"indices", kIndex}, {"updates"}},
                            .outputs = {{"output"}},
                            .attrs = {AxisOf({"axis", 0, "the axis"}), {"reduction", "none", "none, add, mul, max or min"}},
                            .infer = InferScatterElements,
                            .eval = EvalScatterElements,
                            .gradient = ScatterElementsGradient,
                            .in_place = {{0, 0}},
                            .since = 11,
                            .examples = {"(T[4,4], int64[1,4]<0,2,1,3>, T[1,4])",
                                         "(T[4,4], int64[3,2]<3,0,0,1,-3,2>, T[3,2]) {axis=1, reduction=\"add\"}"}};

}  // namespace mge::op_scatter_elements
