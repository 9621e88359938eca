// SPDX-License-Identifier: Apache-2.0
// The window functions Hann, Hamming and Blackman: sums of cosines over a period.
#pragma once

#include "core/ops/infer_checks.h"

namespace mge {

// Sets output 0 to a vector of `size` elements. The attribute output_datatype is its element type.
absl::Status InferWindowFunction(InferContext& ctx);

// Computes w[n] = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N). N is the size if attribute periodic is 1, else size -
// 1.
absl::Status EvalWindowFunction(EvalContext& ctx, double a0, double a1, double a2);

}  // namespace mge
