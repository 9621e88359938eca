// SPDX-License-Identifier: Apache-2.0
// The sub-commands devices, env and version, which show reports on the runtime.
#include <unistd.h>

#include "core/base/output.h"
#include "core/cli/common.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// Names the refused backends on stderr, because a user may search for their devices or settings in vain.
int SayWhoWasRefused(const Globals& globals, const Runtime& runtime) {
  std::string text;
  if (Status s = runtime.Report("mge.plugins/1", &text); !s.ok()) return Report(globals, s);
  const Json plugins = Json::parse(text);
  for (const Json& file : plugins["files"]) {
    if (file["verdict"] != "refused") continue;
    Talk(globals, fmt::format("refused: {}: {}; fix: {}", Escape(file["path"].get<std::string>()),
                              Escape(file["reason"].get<std::string>()), Escape(file["fix"].get<std::string>())));
  }
  return kExitOk;
}

// Checks the device that a run would use if it names none. If the name is misspelt, prints the error of such a run and returns
// its exit code. If the device is only absent, warns.
int CheckDefaultDevice(const Globals& globals, const Json& report) {
  const Json& error = report["default_device"]["error"];
  if (error.is_null()) return kExitOk;
  const std::string text = error["text"].get<std::string>();
  if (!error["misspelt"]) {
    Talk(globals, "warning: " + text.substr(text.find(' ') + 1));
    return kExitOk;
  }
  std::fprintf(stderr, "mge: %s\n", text.c_str());
  return error["exit_code"];
}

// Prints a report with a default device, with --json unchanged, else as the text that `render` returns.
int Show(const Globals& globals, const char* schema, const std::function<std::string(const Json&)>& render) {
  Runtime runtime;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  std::string text;
  if (Status s = runtime.Report(schema, &text); !s.ok()) return Report(globals, s);
  const Json report = Json::parse(text);
  Print(globals.json ? text + "\n" : render(report));
  int code = SayWhoWasRefused(globals, runtime);
  if (code == kExitOk) code = CheckDefaultDevice(globals, report);
  // A backend that is still starting may hold a lock of the dynamic linker, for which exit() would wait.
  if (!report["not_started"].empty()) _exit(FlushOutput(code));
  return code;
}

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string RenderDevices(const Json& report) {
  std::vector<std::vector<std::string>> rows = {{"DEVICE", "STATE", "BACKEND", "MEMORY", "FREE", "WHAT"}};
  for (const Json& d : report["devices"]) {
    std::string what = Text(d["state"]) == "loadable" ? Text(d["description"]) : Text(d["reason"]);
    if (!Text(d["alias"]).empty()) what = fmt::format("({}) {}", Text(d["alias"]), what);
    const uint64_t total = d["memory_total"], free = d["memory_free"];  // both 0 if unknown
    rows.push_back({Text(d["name"]), Text(d["state"]), Text(d["plugin"]), total ? HumanBytes(total) : "-",
                    total ? HumanBytes(free) : "-", what});
  }
  return Table(rows);
}

}  // namespace

Action DeclareDevices(Arguments, const Globals& globals) {
  return [&globals] { return Show(globals, "mge.devices/1", RenderDevices); };
}

Action DeclareEnv(Arguments app, const Globals& globals) {
  struct Options {
    std::string filter;
    bool changed = false;
  };
  auto o = std::make_shared<Options>();
  app.Add("FILTER", o->filter, "Part of a key, variable or alias");
  app.AddFlag("--changed", o->changed, "Lists only settings that differ from their defaults");
  return [&globals, o] {
    auto matches = [o](const Json& s) {
      if (o->changed && Text(s["origin"]) == "default") return false;
      if (o->filter.empty()) return true;
      std::string all = Text(s["key"]) + " " + Text(s["variable"]);
      for (const Json& a : s["aliases"]) all += " " + Text(a);
      return all.find(o->filter) != std::string::npos;
    };
    return Show(globals, "mge.env/1", [&](const Json& report) {
      std::vector<std::vector<std::string>> rows = {{"SETTING", "VALUE", "ORIGIN", "CHANGES", "VARIABLE"}};
      std::string docs;
      for (const Json& s : report["settings"]) {
        if (!matches(s)) continue;
        std::string value = Text(s["value"]);
        std::string lifecycle = Text(s["lifecycle"]) + (Text(s["status"]) == "later" ? " (later)" : "");
        rows.push_back({Text(s["key"]), value.empty() ? "-" : value, Text(s["origin"]), lifecycle, Text(s["variable"])});
        if (!o->filter.empty()) {
          docs += fmt::format("\n{}: {}\n", Text(s["key"]), Text(s["doc"]));
          if (!Text(s["allowed"]).empty()) docs += fmt::format("  allowed: {}\n", Text(s["allowed"]));
          for (const Json& a : s["aliases"]) docs += fmt::format("  alias:   {}\n", Text(a));
        }
      }
      return Table(rows) + docs;
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
