// SPDX-License-Identifier: Apache-2.0
// Post-processors: they add tokens, such as one for the beginning, around those of a text.
#pragma once

#include <cstdint>
#include <vector>

#include "core/text/json_part.h"

namespace mge::text {

// The tokens before and after those of the text.
struct AddedAround {
  std::vector<int64_t> before, after;
};

// Reads a post-processor; null adds nothing. Sets the part's status if it fails.
AddedAround ReadPostProcessor(const Part& part);

}  // namespace mge::text
