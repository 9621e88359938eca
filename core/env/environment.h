// SPDX-License-Identifier: Apache-2.0
// Environment: a copy of the process's variables. Only CaptureEnvironment() reads them; no other code calls
// getenv().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mge {

struct Environment {
  std::vector<std::pair<std::string, std::string>> variables;  // name, value

  // Returns the value of a variable, or nullopt if it is unset or empty.
  std::optional<std::string_view> Find(std::string_view name) const;
};

// Returns $HOME, or "" if it is not an absolute path.
std::string HomeDirectory(const Environment& environment);

// Returns the directory of this user's persistent state, such as the quarantine: $XDG_STATE_HOME/mge, else
// ~/.local/state/mge. Returns "" if neither variable is an absolute path.
std::string StateDirectory(const Environment& environment);

// Copies the variables of settings, those with a prefix in kVariablePrefixes, those of launchers of several processes, and
// HOME, XDG_CACHE_HOME and XDG_STATE_HOME, which locate caches and state. The result is empty in a process with raised
// privileges (AT_SECURE). Must not run while another thread calls setenv().
Environment CaptureEnvironment();

// Finds out whether the process's variables have changed, by the addresses of their texts: setenv() and unsetenv() replace
// them. Does not see a text that a program overwrites where it lies. Like CaptureEnvironment(), must not run while another
// thread calls setenv().
class EnvironmentWatch {
 public:
  // Returns whether something changed since the last call; true at the first call.
  bool Changed();
  // Makes the next call of Changed() return true.
  void Forget() { seen_.clear(); }

 private:
  std::vector<const void*> seen_;  // the list of variables, then its entries
};

}  // namespace mge
