// SPDX-License-Identifier: Apache-2.0
// A sub-command of `mge`: one row of the table in main.cc, one file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/cli/arguments.h"
#include "mge/mge.hpp"

namespace mge::cli {

// Options that every sub-command takes.
struct Globals {
  bool json = false;
  bool quiet = false;
  std::string color = "auto";  // --color: see SetColor()
  std::string device;
  int threads = 0;
  std::string data_folder;                // --data-folder: of the models' external data
  std::vector<std::string> settings;      // --set NAME=VALUE
  std::vector<std::string> config_files;  // --config
  std::string speaker;                    // before errors: "[rank 2/4, host] " in one of several processes, else empty
};

// The action of a sub-command, called after the command line was parsed. Returns the exit code.
using Action = std::function<int()>;

struct Command {
  const char* name;
  const char* doc;
  Action (*declare)(Arguments app, const Globals& globals);  // adds the options, which the returned action uses
  const char* examples = "";                                 // command lines, one per line
};

Action DeclareRun(Arguments app, const Globals& globals);
Action DeclareCompare(Arguments app, const Globals& globals);
Action DeclareTrain(Arguments app, const Globals& globals);
Action DeclareGenerate(Arguments app, const Globals& globals);
Action DeclareCheck(Arguments app, const Globals& globals);
Action DeclareBench(Arguments app, const Globals& globals);
Action DeclareProfile(Arguments app, const Globals& globals);
Action DeclarePlan(Arguments app, const Globals& globals);
Action DeclareMemory(Arguments app, const Globals& globals);
Action DeclareInspect(Arguments app, const Globals& globals);
Action DeclareDevices(Arguments app, const Globals& globals);
Action DeclarePlugins(Arguments app, const Globals& globals);
Action DeclareDoctor(Arguments app, const Globals& globals);
Action DeclareEnv(Arguments app, const Globals& globals);
Action DeclareZoo(Arguments app, const Globals& globals);
Action DeclareDemo(Arguments app, const Globals& globals);
Action DeclareSdk(Arguments app, const Globals& globals);
Action DeclareHelp(Arguments app, const Globals& globals);
Action DeclareVersion(Arguments app, const Globals& globals);

int PrintVersion(const Globals& globals, bool verbose);
// Prints the help of the command with these words, of all for none. `root` is the parsed command line.
int HelpOnCommand(const Globals& globals, const CLI::App& root, const std::vector<std::string>& topic);

}  // namespace mge::cli
