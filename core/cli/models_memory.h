// SPDX-License-Identifier: Apache-2.0
// The memory of several models in one runtime, and what they save by sharing it (memory.static_policy).
#pragma once

#include <string>
#include <vector>

#include "core/cli/inputs.h"

namespace mge::cli {

// Loads all models, runs one after the other, and prints the memory of each and of all together, with --json as
// "mge.models_memory/1". Returns the exit code.
int ShowModelsMemory(const Globals& globals, const std::vector<std::string>& models, const InputOptions& inputs);

}  // namespace mge::cli
