// SPDX-License-Identifier: Apache-2.0
#include "core/env/settings.h"

#include "core/env/setting_table.h"

namespace mge {

static_assert(ValidSettings(kSettings));

std::string VariableOf(std::string_view key) { return std::string(VariableName(key).view()); }

}  // namespace mge
