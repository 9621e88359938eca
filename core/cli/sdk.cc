// SPDX-License-Identifier: Apache-2.0
// `mge sdk`: commands for authors of backends. Each is one row here and one file.
#include "core/cli/sdk.h"

namespace mge::cli {
namespace {

constexpr Command kSdkCommands[] = {
    {"new", "Writes the project of a new backend: sources, build, tests.", DeclareSdkNew},
    {"test", "Checks a backend's file with the conformance kit and writes a report.", DeclareSdkTest},
};

}  // namespace

Action DeclareSdk(Arguments app, const Globals& globals) {
  app.TakesCommands(1);
  auto actions = std::make_shared<std::vector<std::pair<Arguments, Action>>>();
  for (const Command& c : kSdkCommands) {
    const Arguments sub = app.AddCommand(c.name, c.doc);
    actions->emplace_back(sub, c.declare(sub, globals));
  }
  return [actions] {
    for (auto& [sub, action] : *actions) {
      if (sub.Given()) return action();
    }
    return 2;
  };
}

}  // namespace mge::cli
