// SPDX-License-Identifier: Apache-2.0
// HannWindow, HammingWindow and BlackmanWindow: sums of cosines over a period.
#pragma once

#include "core/ops/infer_checks.h"

namespace mge {

// Output 0 is a vector of `size` elements of the type that attribute output_datatype names.
absl::Status InferWindowFunction(InferContext& ctx);

// w[n] = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), N = size if attribute periodic is 1, else
// size - 1.
absl::Status EvalWindowFunction(EvalContext& ctx, double a0, double a1, double a2);

}  // namespace mge
