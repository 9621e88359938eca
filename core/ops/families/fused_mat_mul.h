// SPDX-License-Identifier: Apache-2.0
// The row of FusedMatMul, which has two names.
#pragma once

#include "core/ops/function_body.h"

namespace mge {

inline constexpr InputList kFusedMatMulInputs = {{"A", kFloating}, {"B", kFloating}};
inline constexpr AttrList kFusedMatMulAttrs = {{"alpha", 1.0f, "the factor"},
                                               {"transA", 0, "not 0: A is transposed"},
                                               {"transB", 0, "not 0: B is transposed"},
                                               {"transBatchA", 0, "not 0: the batch is A's second to last axis"},
                                               {"transBatchB", 0, "not 0: the batch is B's second to last axis"}};

}  // namespace mge
