// SPDX-License-Identifier: Apache-2.0
// What a backend's table declares, as the registry takes it.
#pragma once

#include <span>
#include <vector>

#include "core/env/registry.h"
#include "mge/plugin.h"

namespace mge {

std::vector<BackendSetting> DeclaredSettings(std::span<const mge_setting* const> rows);

}  // namespace mge
