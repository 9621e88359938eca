// SPDX-License-Identifier: Apache-2.0
#include "core/env/removed_names.h"

#include "core/env/settings.h"

namespace mge {

std::string SuccessorOf(std::string_view name) {
  for (const auto& [variable, successor] : kRemovedVariables) {
    if (name == variable) return std::string(successor);
  }
  for (const auto& [key, successor] : kRemovedKeys) {
    if (name == key) return std::string(successor);
    if (name == VariableOf(key)) return VariableOf(successor);
  }
  return {};
}

}  // namespace mge
