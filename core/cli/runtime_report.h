// SPDX-License-Identifier: Apache-2.0
// Commands that show a report on the runtime.
#pragma once

#include <functional>

#include "core/cli/common.h"

namespace mge::cli {

// Creates a runtime, reads its report and calls `show`, which prints it and returns an exit code. Then names the refused
// backends on stderr, because a user may search for their devices or settings in vain, and checks the default device: a
// misspelt name is the error of a run, an absent device a warning. Returns the first exit code that is not 0.
int ShowRuntimeReport(const Globals& globals, const char* schema, const std::function<int(Json& report)>& show);

}  // namespace mge::cli
