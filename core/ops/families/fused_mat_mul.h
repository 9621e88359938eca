// SPDX-License-Identifier: Apache-2.0
// The row of FusedMatMul, which has two names.
#pragma once

#include "core/ops/function_body.h"

namespace mge {

inline constexpr InputList kFusedMatMulInputs = {{"A", kFloating}, {"B", kFloating}};
inline constexpr AttrList kFusedMatMulAttrs = {{"alpha", AttrType::kFloat},
                                               {"transA", AttrType::kInt},
                                               {"transB", AttrType::kInt},
                                               {"transBatchA", AttrType::kInt},
                                               {"transBatchB", AttrType::kInt}};

}  // namespace mge
