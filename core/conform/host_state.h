// SPDX-License-Identifier: Apache-2.0
// The process-wide state that belongs to the host: signal handlers and masks, locale, working folder, environment, limits,
// umask.
#pragma once

#include <map>
#include <string>

namespace mge::conform {

// A copy of this state at one moment: name -> value.
using HostState = std::map<std::string, std::string>;
HostState HostStateNow();
// Returns the differences, such as "the locale (was C, is C.UTF-8)", or "".
std::string Changes(const HostState& before, const HostState& now);

}  // namespace mge::conform
