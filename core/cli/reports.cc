// SPDX-License-Identifier: Apache-2.0
// The sub-commands devices and version.
#include "core/cli/common.h"
#include "core/cli/runtime_report.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

std::string RenderDevices(const Json& report) {
  std::vector<std::vector<std::string>> rows = {{"DEVICE", "STATE", "BACKEND", "MEMORY", "FREE", "WHAT"}};
  for (const Json& d : report["devices"]) {
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

Action DeclareDevices(Arguments, const Globals& globals) {
  return [&globals] {
    return ShowRuntimeReport(globals, "mge.devices/1", [&](Json& report) {
      if (globals.json) {
        PrintJson(report);
      } else {
        Print(RenderDevices(report));
      }
      return kExitOk;
    });
  };
}

int PrintVersion(const Globals& globals) {
  if (globals.json) {
    PrintJson({{"schema", "mge.version/1"}, {"version", mge_version()}});
  } else {
    Print(fmt::format("mge {}\n", mge_version()));
  }
  return kExitOk;
}

Action DeclareVersion(Arguments, const Globals& globals) {
  return [&globals] { return PrintVersion(globals); };
}

}  // namespace mge::cli
