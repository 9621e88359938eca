// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/scatter.h"

namespace mge::op_scatter_elements {

MGE_OP(scatter_elements) = {.name = "ScatterElements",
                            .doc = "The data with elements set, or combined by `reduction`, at the indices.",
                            .inputs = {{"data"}, {"indices", kIndex}, {"updates"}},
                            .outputs = {{"output"}},
                            .attrs = {{"axis", AttrType::kInt}, {"reduction", AttrType::kText}},
                            .infer = InferScatterElements,
                            .eval = EvalScatterElements,
                            .in_place = {{0, 0}},
                            .since = 11,
                            .examples = {"(T[3,4], int64[1,4]<0,2,1,0>, T[1,4])"}};

}  // namespace mge::op_scatter_elements
