// SPDX-License-Identifier: Apache-2.0
// The conversion of training data to the types of a model.
#pragma once

#include <span>

#include "core/engine/session.h"

namespace mge::api {

// Converts inputs in host memory that have another floating type than the session declares, or another integer type: data in
// float64, class numbers in int32. Other inputs stay as they are.
absl::Status ConvertInputs(const Session& session, std::span<HostValue> inputs);

}  // namespace mge::api
