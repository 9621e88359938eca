// SPDX-License-Identifier: Apache-2.0
// What a process has once, and the host alone decides on: signals, locale, folder, environment, limits.
#pragma once

#include <map>
#include <string>

namespace mge::conform {

class HostState {
 public:
  static HostState Now();
  // "the handler of SIGINT, the locale (was C, is C.UTF-8)", or "".
  std::string ChangedSince(const HostState& before) const;

 private:
  std::map<std::string, std::string> parts_;  // by what they are called
};

}  // namespace mge::conform
