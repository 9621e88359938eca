// SPDX-License-Identifier: Apache-2.0
// Generation of the pages under configs/ from the table of settings.
#pragma once

#include <string>

namespace mge {

std::string SettingsMarkdown();  // returns the text of configs/SETTINGS.md
std::string SettingsToml();      // returns the text of configs/mge.toml: every key with its default, commented out

}  // namespace mge
