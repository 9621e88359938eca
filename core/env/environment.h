// SPDX-License-Identifier: Apache-2.0
// Environment: the variables of the process as they were when they were captured. The only door to
// them in the whole tree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mge {

struct Environment {
  std::vector<std::pair<std::string, std::string>> variables;  // name, value; tests write their own

  // The value of a variable; nothing if it is not set or empty.
  std::optional<std::string_view> Find(std::string_view name) const;
};

// Where this user's state lies, such as the quarantine: $XDG_STATE_HOME/mge, else ~/.local/state/mge; empty if there is
// neither.
std::string StateDirectory(const Environment& environment);

// Reads the environment once: the names of settings, those with a prefix of ours, and HOME, XDG_CACHE_HOME and
// XDG_STATE_HOME for the places of caches and state; nothing else is copied. Empty in a process that runs
// with raised rights (AT_SECURE). Must not run beside setenv().
Environment CaptureEnvironment();

}  // namespace mge
