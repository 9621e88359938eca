// SPDX-License-Identifier: Apache-2.0
// Reads the logits that a model returned.
#pragma once

#include <vector>

#include "core/base/status.h"
#include "core/base/tensor.h"

namespace mge {

// Sets `out` to the logits of the last token, of [.., vocabulary]. Fails with kUnsupportedFeature if they are not numbers of floating point.
absl::Status ReadLastLogits(const Tensor& logits, std::vector<float>& out);
// Sets `out` to the logits of each of the `rows` sequences, of [rows, 1, vocabulary]. Fails in the same way.
absl::Status ReadLogitsOfRows(const Tensor& logits, size_t rows, std::vector<std::vector<float>>& out);

}  // namespace mge
