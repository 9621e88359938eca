// SPDX-License-Identifier: Apache-2.0
// Type inference that also returns the element values it could compute. Algorithm: infer_types.cc.
#pragma once

#include <vector>

#include "core/ops/op.h"

namespace mge {

// Infers types as InferTypes() does. Sets `known`, indexed by value, to the small tensors that follow from types and
// constants alone. An example is the result of Shape for a static input. Other entries are undefined tensors. `known`
// must not be null.
absl::Status InferKnownValues(Graph& graph, std::vector<Tensor>* known, const StopCheck& stop = nullptr);

}  // namespace mge
