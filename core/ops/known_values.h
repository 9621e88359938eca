// SPDX-License-Identifier: Apache-2.0
// Type inference that also tells which elements it knows.
#pragma once

#include <vector>

#include "core/ops/op.h"

namespace mge {

// InferTypes; `known` gets, by value, the small tensors that follow from types and constants alone, such as what
// Shape yields for a static input. Undefined where a value is big or depends on what is not known yet.
absl::Status InferKnownValues(Graph& graph, std::vector<Tensor>* known);

}  // namespace mge
