// SPDX-License-Identifier: Apache-2.0
// The checks of each training step that returns its loss in host memory.
#pragma once

#include <memory>

#include "core/api/objects.h"

namespace mge::api {

// Lets each run of a training session fail with kNotFinite if its loss is not finite and the option on_nan is "stop", warn once if
// it is "skip", and warn once of a batch whose labels are all ignored.
void CheckSteps(mge::Session& session, std::shared_ptr<const TrainedModel> trained);

}  // namespace mge::api
