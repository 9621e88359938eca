// SPDX-License-Identifier: Apache-2.0
// The commands of the group `mge sdk`.
#pragma once

#include "core/cli/command.h"

namespace mge::cli {

Action DeclareSdkNew(Arguments app, const Globals& globals);
Action DeclareSdkTest(Arguments app, const Globals& globals);

}  // namespace mge::cli
