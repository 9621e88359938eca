// SPDX-License-Identifier: Apache-2.0
// mge generate: continues a prompt with a language model, and reports how near to the memory's bandwidth it works.
#pragma once

#include <cstdint>
#include <string>

#include "core/cli/command.h"

namespace mge::cli {

// Does `mge bench FOLDER --generate`: continues a prompt of that many random tokens twice, and reports the second time. Returns the exit
// code.
int BenchGeneration(const Globals& globals, const std::string& folder, int64_t prompt_tokens, int64_t max_tokens);

}  // namespace mge::cli
