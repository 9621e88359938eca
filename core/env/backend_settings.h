// SPDX-License-Identifier: Apache-2.0
// Conversion of the settings in a backend's table (mge/plugin.h) into the registry's form.
#pragma once

#include <span>
#include <vector>

#include "core/env/registry.h"
#include "mge/plugin.h"

namespace mge {

// Converts the rows, which must have passed the check of the backend's table.
std::vector<BackendSetting> DeclaredSettings(std::span<const mge_setting* const> rows);

}  // namespace mge
