// SPDX-License-Identifier: Apache-2.0
// The commands of the group `mge sdk`.
#pragma once

#include "core/cli/command.h"

namespace mge::cli {

Action DeclareSdkNew(CLI::App& app, const Globals& globals);
Action DeclareSdkTest(CLI::App& app, const Globals& globals);

}  // namespace mge::cli
