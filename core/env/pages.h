// SPDX-License-Identifier: Apache-2.0
// The pages that are generated from the table of settings and checked in under configs/.
#pragma once

#include <string>

namespace mge {

std::string SettingsMarkdown();  // configs/SETTINGS.md
std::string SettingsToml();      // configs/mge.toml: every key with its default, commented out

}  // namespace mge
