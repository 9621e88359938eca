// SPDX-License-Identifier: Apache-2.0
#include "core/env/settings.h"

#include "core/env/setting_table.h"

namespace mge {

static_assert(ValidSettings(kSettings));

std::string VariableOf(const SettingRow& row) { return std::string(VariableName(row).view()); }

}  // namespace mge
