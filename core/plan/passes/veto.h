// SPDX-License-Identifier: Apache-2.0
// Vetoes: the rewrites that a backend forbids for models on its devices, and those for which it does not ask.
#pragma once

#include "core/base/status.h"
#include "core/plan/program.h"

namespace mge {

// Asks the backends of the context's devices about each rewrite. Adds the forbidden ones to context.skip, and a sentence for
// each to context.vetoes. Adds a rewrite that is applied on request, too, without a sentence, if the first device's backend
// does not ask for it. Opens devices whose backend has such a rule. Fails if the first device fails.
absl::Status ApplyVetoes(PlanContext& context);

}  // namespace mge
