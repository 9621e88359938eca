// SPDX-License-Identifier: Apache-2.0
// The picture of the memory of a plan.
#pragma once

#include <string>

#include "core/html/page.h"

namespace mge::html {

// Draws the report "mge.memory/1" as the body of a page: each buffer of the arenas as a rectangle, over the steps and bytes
// that it occupies, the bytes in use at each step, and the largest buffers.
std::string MemoryBody(const Json& memory);

}  // namespace mge::html
