// SPDX-License-Identifier: Apache-2.0
// Host memory in slabs.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cpu {

extern const mge_memory_api kMemoryApi;

}  // namespace mge::cpu
