// SPDX-License-Identifier: Apache-2.0
// Settings that do nothing without another one, for a warning where a user gave only the first.
#pragma once

#include <string>
#include <vector>

#include "core/env/snapshot.h"

namespace mge {

enum class NeedsOf { kSession, kEager };  // which part reads the settings

// Returns a sentence for each setting that a source set, and that has no effect because another one is not set to the value that
// it needs. In the order of the table.
std::vector<std::string> UnmetNeeds(const Snapshot& settings, NeedsOf part);

}  // namespace mge
