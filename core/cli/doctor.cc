// SPDX-License-Identifier: Apache-2.0
// mge doctor: tries every backend in a process of its own, and keeps away what ends or hangs one.
#include <algorithm>
#include <initializer_list>

#include "core/cli/child.h"
#include "core/cli/common.h"
#include "core/cli/probe.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr int kExitDevice = 5;
constexpr std::string_view kStart = "starting";           // the stage whose failure brings a file into quarantine
constexpr std::string_view kEnd = "leaving the process";  // the last one
constexpr size_t kMostShown = 100;                        // bytes of a line that a backend writes

struct Options {
  double timeout_s = 5;
  std::string release;
  std::string probe;
};

RuntimeOptions OptionsOf(const Globals& globals) {
  RuntimeOptions options;
  options.command_line = globals.settings;
  options.config_files = globals.config_files;
  return options;
}

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// A JSON object that has all of these as texts.
bool HasTexts(const Json& value, std::initializer_list<const char*> keys) {
  return value.is_object() &&
         std::all_of(keys.begin(), keys.end(), [&](const char* key) { return value.contains(key) && value[key].is_string(); });
}

// What the child of a backend said.
struct Heard {
  std::string stage;      // the last one
  std::string closed_at;  // the stage in which the backend closed the way of all this
  std::string foreign;    // a line that the backend itself has written there
};

// Enters a line into the row; false if it is none of the child's.
bool Enter(std::string_view line, Heard& heard, Json& row) {
  const Json said = Json::parse(line, nullptr, false);
  if (!said.is_object() || said.size() != 1) return false;
  const std::string& key = said.begin().key();
  const Json& value = said.begin().value();
  if (key == "stage" && value.is_string()) {
    heard.stage = value;
  } else if (key == "plugin" && HasTexts(value, {"verdict", "code", "reason", "fix"})) {
    for (const char* text : {"verdict", "code", "reason", "fix"}) row[text] = value[text];
  } else if (key == "on_demand" && value.is_string()) {
    row["on_demand"] = value;
  } else if (key == "device" && HasTexts(value, {"name", "class", "state", "operator", "reason", "fix"}) &&
             value.contains("troubled") && value["troubled"].is_boolean()) {
    row["devices"].push_back(value);
  } else if (key == "closed") {
    heard.closed_at = heard.stage;
  } else {
    return false;
  }
  return true;
}

// What the backend did to descriptors that are not its own, as a sentence; empty if nothing.
std::string Trespass(const Heard& heard) {
  if (!heard.closed_at.empty()) return fmt::format("it closed descriptors that are not its own, while {}", heard.closed_at);
  if (heard.foreign.empty()) return {};
  return fmt::format("it wrote to a descriptor that is not its own: '{}'", heard.foreign);
}

// Probes an accepted file and completes its row: verdict, devices, state.
void Probe(const Globals& globals, const Options& o, Json& row) {
  std::string path = Text(row["path"]);
  std::vector<std::string> arguments = {"mge", "doctor", "--probe", path};
  for (const std::string& s : globals.settings) arguments.insert(arguments.end(), {"--set", s});
  for (const std::string& f : globals.config_files) arguments.insert(arguments.end(), {"--config", f});
  Heard heard;
  ChildEnd end = RunSelf(arguments, o.timeout_s, [&](std::string_view line) {
    if (Enter(line, heard, row)) return true;
    if (heard.foreign.empty()) heard.foreign = line.substr(0, kMostShown);
    return false;
  });
  const bool unheard = end.signal == UnheardSignal();
  if (unheard) heard.closed_at = heard.stage;
  const std::string& stage = heard.stage;
  const std::string trespass = Trespass(heard);
  bool loaded = Text(row["verdict"]) == "loaded";
  bool whole = end.fine() && stage == kEnd;  // a plugin that calls exit(0) does not get there
  bool failed = false, ran = false;
  for (const Json& d : row["devices"]) {
    failed |= d["troubled"].get<bool>();
    ran |= Text(d["state"]) == "passed";
  }
  const bool sound = whole && trespass.empty();
  row["state"] = !loaded ? "found" : sound && ran && !failed ? "passed" : "loadable";
  row["troubled"] = !sound || failed || Text(row["verdict"]) == "refused";
  const bool threw = Text(row["code"]) == "open_threw";  // which no process gets over, as if it had ended
  if (sound && !threw) return;
  if ((whole || unheard) && !threw) {
    if (Text(row["verdict"]) == "refused") return;
    row["code"] = "foreign_descriptor";
    row["reason"] = trespass + (unheard ? ", and could be tried no further" : "");
    row["fix"] = fmt::format("report it to the author of backend '{}': it can take files and connections from a program "
                             "that loads it",
                             Text(row["name"]));
    return;
  }

  std::string what = end.timed_out ? fmt::format("it did not answer within {} s", o.timeout_s) : end.Describe();
  if (end.timed_out && !end.last_words.empty()) what += fmt::format("; its last words: {}", end.last_words);
  if (stage.empty()) {  // nothing of the backend has run
    row["code"] = "not_probed";
    row["reason"] = fmt::format("it could not be tried: {}, before anything of the backend ran", what);
    row["fix"] = "run mge doctor where a process may have more (ulimit -n, -u and -v say how much)";
    return;
  }
  if (!threw) {
    row["code"] = end.timed_out ? "timed_out" : "crashed";
    row["reason"] = fmt::format("{} while {}", what, stage);
    row["fix"] = fmt::format("report it to the author of backend '{}', or remove the file", Text(row["name"]));
    if (stage != kStart) return;
  }
  if (Status s = Plugins::Quarantine(OptionsOf(globals), path, Text(row["reason"])); !s.ok()) {
    row["reason"] = fmt::format("{}; it could not be put into quarantine: {}", Text(row["reason"]), s.what());
    return;
  }
  row["verdict"] = "refused";
  row["code"] = "quarantined";
  row["quarantined"] = true;
  row["fix"] = fmt::format("install another build of it; to try this one again: mge doctor --release {}", Text(row["name"]));
  if (end.timed_out && !threw) {
    row["fix"] = fmt::format("{} --timeout {:.0f}, if it is only slow", Text(row["fix"]), 10 * o.timeout_s);
  }
}

std::string Render(const Json& report) {
  std::string out;
  for (const Json& f : report["plugins"]) {
    out += fmt::format("{:<9} {}", Text(f["state"]), Escape(Text(f["path"])));
    if (!Text(f["name"]).empty()) out += fmt::format(" ({} {})", Escape(Text(f["name"])), Escape(Text(f["version"])));
    out += "\n";
    for (const Json& d : f["devices"]) {
      std::string ran =
          Text(d["state"]) == "passed" ? fmt::format("{} runs", Text(d["operator"])) : Escape(Text(d["reason"]));
      out += fmt::format("  {:<9} {}: {}\n", Text(d["state"]), Escape(Text(d["name"])), ran);
      if (!Text(d["fix"]).empty()) out += fmt::format("  fix:   {}\n", Escape(Text(d["fix"])));
    }
    if (std::string set = Text(f["on_demand"]); !set.empty()) {
      out += fmt::format("  it has a device on demand only: tried with --set {}\n", set);
    }
    if (Text(f["verdict"]) == "loaded" && f["devices"].empty() && !f["troubled"].get<bool>()) out += "  it drives no device now\n";
    if (!Text(f["warning"]).empty()) out += fmt::format("  warn:  {}\n", Escape(Text(f["warning"])));
    if (!Text(f["reason"]).empty()) out += fmt::format("  why:   {} ({})\n", Escape(Text(f["reason"])), Text(f["code"]));
    if (!Text(f["fix"]).empty()) out += fmt::format("  fix:   {}\n", Escape(Text(f["fix"])));
  }
  if (report["plugins"].empty()) out += "found     no backend: `mge plugins paths` says where was searched\n";
  return out + fmt::format("{} passed, {} failed\n", report["passed"].get<int>(), report["troubled"].get<int>());
}

int Run(const Globals& globals, const Options& o) {
  if (!o.probe.empty()) return ProbeBackend(globals, o.probe);
  RuntimeOptions options = OptionsOf(globals);
  if (!o.release.empty()) {
    if (Status s = Plugins::Readmit(options, o.release); !s.ok()) return Report(globals, s);
    Talk(globals, fmt::format("{} is out of quarantine\n", Escape(o.release)));
  }
  std::string text;
  if (Status s = Plugins::Judge(options, "", &text); !s.ok()) return Report(globals, s);
  Json found = Json::parse(text), rows = Json::array();
  int passed = 0, troubled = 0;
  Progress progress(globals, "probing backends", found["files"].size());
  for (const Json& file : found["files"]) {
    Json row = {{"state", "found"}};
    row.update(file);
    row["quarantined"] = Text(row["code"]) == "quarantined";
    row["troubled"] = Text(row["verdict"]) == "refused";
    row["devices"] = Json::array();
    row["on_demand"] = "";
    if (Text(row["verdict"]) == "accepted") Probe(globals, o, row);
    passed += Text(row["state"]) == "passed";
    troubled += row["troubled"].get<bool>();
    rows.push_back(std::move(row));
    progress.Step(rows.size());
  }
  Json report = {{"schema", "mge.doctor/1"},
                 {"timeout_s", o.timeout_s},
                 {"passed", passed},
                 {"troubled", troubled},
                 {"plugins", std::move(rows)}};
  if (globals.json) {
    PrintJson(report);
  } else {
    Print(Render(report));
  }
  return passed > 0 && troubled == 0 ? kExitOk : kExitDevice;
}

}  // namespace

Action DeclareDoctor(CLI::App& app, const Globals& globals) {
  auto o = std::make_shared<Options>();
  app.add_option("--timeout", o->timeout_s, "Seconds that a backend may take for its start, and for each operator")
      ->check(Between(0.1, 3600));
  app.add_option("--release", o->release, "NAME: lets this backend out of quarantine first");
  app.add_option("--probe", o->probe, "FILE: the child's part")->group("");
  return [&globals, o] { return Run(globals, *o); };
}

}  // namespace mge::cli
