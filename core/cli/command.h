// SPDX-License-Identifier: Apache-2.0
// A sub-command of `mge`: one row of the table in main.cc, one file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "mge/mge.hpp"

namespace mge::cli {

// Options that every sub-command takes.
struct Globals {
  bool json = false;
  bool quiet = false;
  std::string device;
  int threads = 0;
  std::vector<std::string> settings;      // --set NAME=VALUE
  std::vector<std::string> config_files;  // --config
};

// The action of a sub-command, called after the command line was parsed. Returns the exit code.
using Action = std::function<int()>;

struct Command {
  const char* name;
  const char* doc;
  Action (*declare)(CLI::App& app, const Globals& globals);  // adds the options, which the returned action uses
  const char* examples = "";                                 // command lines, one per line
};

Action DeclareRun(CLI::App& app, const Globals& globals);
Action DeclareCompare(CLI::App& app, const Globals& globals);
Action DeclareCheck(CLI::App& app, const Globals& globals);
Action DeclareBench(CLI::App& app, const Globals& globals);
Action DeclareProfile(CLI::App& app, const Globals& globals);
Action DeclarePlan(CLI::App& app, const Globals& globals);
Action DeclareMemory(CLI::App& app, const Globals& globals);
Action DeclareInspect(CLI::App& app, const Globals& globals);
Action DeclareDevices(CLI::App& app, const Globals& globals);
Action DeclarePlugins(CLI::App& app, const Globals& globals);
Action DeclareDoctor(CLI::App& app, const Globals& globals);
Action DeclareEnv(CLI::App& app, const Globals& globals);
Action DeclareZoo(CLI::App& app, const Globals& globals);
Action DeclareDemo(CLI::App& app, const Globals& globals);
Action DeclareSdk(CLI::App& app, const Globals& globals);
Action DeclareHelp(CLI::App& app, const Globals& globals);
Action DeclareVersion(CLI::App& app, const Globals& globals);

int PrintVersion(const Globals& globals);

}  // namespace mge::cli
