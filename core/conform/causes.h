// SPDX-License-Identifier: Apache-2.0
// The order of the failed checks in a report: first causes, each with the checks that may have failed because of it.
#pragma once

#include <vector>

#include "core/conform/conform.h"

namespace mge::conform {

// A failed check and its likely cause: a failed check of a part that its own part uses, or nullptr.
struct FailedCheck {
  const CheckResult* check = nullptr;
  const CheckResult* cause = nullptr;
};

// Returns the failed checks of a report. Each is behind its cause.
std::vector<FailedCheck> FailedByCause(const Report& report);

}  // namespace mge::conform
