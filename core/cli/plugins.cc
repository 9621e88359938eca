// SPDX-License-Identifier: Apache-2.0
// mge plugins: lists backend files with their verdicts. The sub-commands paths, verify, install and remove work on files and
// do not load a backend.
#include "core/cli/common.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

std::string RenderFile(const Json& f) {
  std::string out = fmt::format("{:<8} {}", Text(f["verdict"]), Escape(Text(f["path"])));
  if (!Text(f["name"]).empty()) {
    std::string classes;
    for (const Json& c : f["classes"]) classes += (classes.empty() ? "" : ",") + Text(c);
    const std::string what = classes.empty() ? "a transport between processes" : "devices: " + Escape(classes);
    out += fmt::format("\n         {} {} (interface {}, {})", Escape(Text(f["name"])), Escape(Text(f["version"])),
                       Text(f["abi"]), what);
  }
  if (f["device_count"] == 0) out += "\n  note:  it lists no device on this machine";
  if (!Text(f["warning"]).empty()) out += fmt::format("\n  warn:  {}", Escape(Text(f["warning"])));
  if (!Text(f["reason"]).empty()) out += fmt::format("\n  why:   {} ({})", Escape(Text(f["reason"])), Text(f["code"]));
  if (!Text(f["fix"]).empty()) out += fmt::format("\n  fix:   {}", Escape(Text(f["fix"])));
  return out + "\n";
}

std::string RenderDirectory(const Json& d) {
  std::string state = d["writable"].get<bool>() ? "can be written"
                      : d["usable"].get<bool>() ? "read only"
                                                : Text(d["reason"]);
  return fmt::format("{} ({}): {}\n", Escape(Text(d["path"])), Escape(Text(d["origin"])), Escape(state));
}

std::string RenderAll(const Json& report) {
  std::string out;
  for (const Json& d : report["directories"]) {
    const bool searched = d["usable"].get<bool>();
    out += fmt::format("{} {} ({})", searched ? "searched" : "not searched", Escape(Text(d["path"])),
                       Escape(Text(d["origin"])));
    out += searched ? "\n" : fmt::format(": {}\n", Escape(Text(d["reason"])));
  }
  for (const Json& f : report["files"]) out += RenderFile(f);
  if (report["files"].empty()) out += "no backend was found; `mge env plugin.path` shows how to add directories\n";
  return out;
}

int List(const Globals& globals) {
  Runtime runtime;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  std::string text;
  if (Status s = runtime.Report("mge.plugins/1").MoveTo(text); !s.ok()) return Report(globals, s);
  Print(globals.json ? text + "\n" : RenderAll(Json::parse(text)));
  return kExitOk;
}

int Paths(const Globals& globals) {
  std::string text;
  if (Status s = Plugins::Verify(OptionsOf(globals), "").MoveTo(text); !s.ok()) return Report(globals, s);
  Json directories = Json::parse(text)["directories"];
  if (globals.json) {
    PrintJson({{"schema", "mge.plugin_paths/1"}, {"directories", directories}});
    return kExitOk;
  }
  for (const Json& d : directories) Print(RenderDirectory(d));
  return kExitOk;
}

int Verify(const Globals& globals, const std::string& file) {
  std::string text;
  if (Status s = Plugins::Verify(OptionsOf(globals), file).MoveTo(text); !s.ok()) return Report(globals, s);
  const Json row = Json::parse(text)["files"][0];
  if (globals.json) {
    Json out = {{"schema", "mge.plugin_file/1"}};
    out.update(row);
    PrintJson(out);
  } else {
    Print(RenderFile(row));
  }
  return Text(row["verdict"]) == "accepted" ? kExitOk : kExitDevice;
}

// Reports the change of a file, or the error.
int Done(const Globals& globals, const Status& status, const char* what, const std::string& path) {
  if (!status.ok()) return Report(globals, status);
  if (globals.json) {
    PrintJson({{"schema", "mge.plugin_change/1"}, {"change", what}, {"path", path}});
  } else {
    Print(fmt::format("{} {}\n", what, Escape(path)));
  }
  return kExitOk;
}

}  // namespace

Action DeclarePlugins(Arguments app, const Globals& globals) {
  struct Options {
    std::string file, name;
  };
  auto o = std::make_shared<Options>();
  app.TakesCommands(0);
  Arguments paths =
      app.AddCommand("paths", "Lists the directories that are searched, in order, and whether they can be used");
  Arguments verify = app.AddCommand("verify", "Checks one file without loading it");
  verify.Add("FILE", o->file, "The backend's .so").Required();
  Arguments install =
      app.AddCommand("install", "Verifies a file and copies it into the first directory that can be written");
  install.Add("FILE", o->file, "The backend's .so").Required();
  Arguments remove = app.AddCommand("remove", "Removes an installed backend's file");
  remove.Add("NAME", o->name, "The backend's name, as mge plugins shows it").Required();
  return [&globals, o, paths, verify, install, remove] {
    std::string path;
    if (paths.Given()) return Paths(globals);
    if (verify.Given()) return Verify(globals, o->file);
    if (install.Given()) {
      Status s = Plugins::Install(OptionsOf(globals), o->file).MoveTo(path);
      return Done(globals, s, "installed", path);
    }
    if (remove.Given()) {
      Status s = Plugins::Remove(OptionsOf(globals), o->name).MoveTo(path);
      return Done(globals, s, "removed", path);
    }
    return List(globals);
  };
}

}  // namespace mge::cli
