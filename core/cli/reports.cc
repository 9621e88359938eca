// SPDX-License-Identifier: Apache-2.0
// The sub-commands devices and version.
#include "core/cli/build_facts.h"
#include "core/cli/common.h"
#include "core/cli/runtime_report.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// The backend for authors of backends, whose device computes on the host: shown only with --all.
constexpr char kAuthorsTemplate[] = "null";

std::string RenderDevices(const Json& report, bool all) {
  std::vector<std::vector<std::string>> rows = {{"DEVICE", "STATE", "BACKEND", "MEMORY", "FREE", "WHAT"}};
  for (const Json& d : report["devices"]) {
    if (!all && Text(d["plugin"]) == kAuthorsTemplate) continue;
    std::string what = Text(d["state"]) == "loadable" ? Text(d["description"]) : Text(d["reason"]);
    if (!Text(d["alias"]).empty()) what = fmt::format("({}) {}", Text(d["alias"]), what);
    const uint64_t total = d["memory_total"], free = d["memory_free"];  // both 0 if unknown
    rows.push_back({Text(d["name"]), Text(d["state"]), Text(d["plugin"]), total ? HumanBytes(total) : "-",
                    total ? HumanBytes(free) : "-", what});
  }
  for (const Json& u : report["unavailable"])
    rows.push_back({"-", "absent", Text(u["plugin"]), "-", "-", Text(u["reason"])});
  return Table(rows);
}

}  // namespace

Action DeclareDevices(Arguments app, const Globals& globals) {
  auto all = std::make_shared<bool>(false);
  app.AddFlag("--all", *all, "Shows the device of the template for authors of backends, too; --json always does");
  return [&globals, all] {
    return ShowRuntimeReport(globals, "mge.devices/1", [&](Json& report) {
      if (globals.json) {
        PrintJson(report);
      } else {
        Print(RenderDevices(report, *all));
      }
      return kExitOk;
    });
  };
}

int PrintVersion(const Globals& globals, bool verbose) {
  if (globals.json) {
    PrintJson({{"schema", "mge.version/1"},
               {"version", mge_version()},
               {"commit", build::kCommit},
               {"compiler", build::kCompiler},
               {"build_type", build::kType}});
    return kExitOk;
  }
  Print(fmt::format("mge {}\n", mge_version()));
  if (verbose)
    Print(fmt::format("commit    {}\ncompiler  {}\nbuild     {}\n", build::kCommit, build::kCompiler, build::kType));
  return kExitOk;
}

Action DeclareVersion(Arguments app, const Globals& globals) {
  auto verbose = std::make_shared<bool>(false);
  app.AddFlag("-v,--verbose", *verbose, "Shows the commit, the compiler and the type of the build, too");
  return [&globals, verbose] { return PrintVersion(globals, *verbose); };
}

}  // namespace mge::cli
