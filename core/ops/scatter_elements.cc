// SPDX-License-Identifier: Apache-2.0
#include "core/ops/scatter.h"

namespace mge {

MGE_OP(scatter_elements) = {.name = "ScatterElements",
                            .doc = "The data with single elements set, or joined by `reduction`, where indices say.",
                            .inputs = {{"data"}, {"indices", kIndex}, {"updates"}},
                            .outputs = {{"output"}},
                            .attrs = {{"axis", AttrType::kInt}, {"reduction", AttrType::kText}},
                            .infer = InferScatterElements,
                            .eval = EvalScatterElements,
                            .in_place = {{0, 0}},
                            .since = 11};

}  // namespace mge
