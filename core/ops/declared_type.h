// SPDX-License-Identifier: Apache-2.0
// Inputs compared with what the model declares for them.
#pragma once

#include "absl/status/status.h"
#include "core/graph/graph.h"

namespace mge {

// Checks a tensor against the declared type of an input. Fails with kBadInput, naming the input, both types and the first
// difference. Sizes that the model leaves open match every size.
absl::Status RequireDeclaredType(const Value& declared, DType dtype, const Shape& shape);

// The error for an input that does not match the model in another way.
absl::Status InputMismatch(const Value& declared, std::string what);

}  // namespace mge
