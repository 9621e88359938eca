// SPDX-License-Identifier: Apache-2.0
// mge doctor: tests every backend in its own process, and puts a backend that crashes or hangs at its start into quarantine.
#include <algorithm>
#include <initializer_list>

#include "core/cli/common.h"
#include "core/cli/probe.h"
#include "core/process/child.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr int kExitDevice = 5;
constexpr std::string_view kStart = "starting";           // a failure in this stage puts a file into quarantine
constexpr std::string_view kEnd = "leaving the process";  // the last stage
constexpr size_t kMostShown = 100;                        // maximum bytes of a backend's line in a message

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

// Returns whether the value is an object with a text for each of the keys.
bool HasTexts(const Json& value, std::initializer_list<const char*> keys) {
  return value.is_object() && std::all_of(keys.begin(), keys.end(),
                                          [&](const char* key) { return value.contains(key) && value[key].is_string(); });
}

// The report of the child process so far.
struct Heard {
  std::string stage;      // the last stage
  std::string closed_at;  // the stage in which the backend closed the report's descriptor; empty if it did not
  std::string foreign;    // a line that the backend itself wrote to the report's descriptor
};

// Adds a line of the report to the row. Returns false if the line does not come from the child's test.
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

// Returns a sentence if the backend closed or wrote to a descriptor that it does not own, else "".
std::string Trespass(const Heard& heard) {
  if (!heard.closed_at.empty()) return fmt::format("it closed descriptors that are not its own, while {}", heard.closed_at);
  if (heard.foreign.empty()) return {};
  return fmt::format("it wrote to a descriptor that is not its own: '{}'", heard.foreign);
}

// Tests an accepted file in a child process and completes its row: verdict, devices, state.
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
  bool whole = end.fine() && stage == kEnd;  // false if a plugin called exit(0)
  bool failed = false, ran = false;
  for (const Json& d : row["devices"]) {
    failed |= d["troubled"].get<bool>();
    ran |= Text(d["state"]) == "passed";
  }
  const bool sound = whole && trespass.empty();
  row["state"] = !loaded ? "found" : sound && ran && !failed ? "passed" : "loadable";
  row["troubled"] = !sound || failed || Text(row["verdict"]) == "refused";
  const bool threw = Text(row["code"]) == "open_threw";  // handled like a crash, because it would end any process
  if (sound && !threw) return;
  if ((whole || unheard) && !threw) {
    if (Text(row["verdict"]) == "refused") return;
    row["code"] = "foreign_descriptor";
    row["reason"] = trespass + (unheard ? ", and the test could not continue" : "");
    row["fix"] = fmt::format(
        "report it to the author of backend '{}': it can damage files and connections of a program "
        "that loads it",
        Text(row["name"]));
    return;
  }

  std::string what = end.timed_out ? fmt::format("it did not respond within {} s", o.timeout_s) : end.Describe();
  if (end.timed_out && !end.last_words.empty()) what += fmt::format("; last line on stderr: {}", end.last_words);
  if (stage.empty()) {  // no code of the backend has run
    row["code"] = "not_probed";
    row["reason"] = fmt::format("it could not be tested: {}, before any code of the backend ran", what);
    row["fix"] = "raise the limits of the process (see ulimit -n, -u and -v), then run mge doctor again";
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
  row["fix"] = fmt::format("install another build; to test this one again: mge doctor --release {}", Text(row["name"]));
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
      out += fmt::format("  it creates devices only on demand: tested with --set {}\n", set);
    }
    if (Text(f["verdict"]) == "loaded" && f["devices"].empty() && !f["troubled"].get<bool>()) out += "  it has no device\n";
    if (!Text(f["warning"]).empty()) out += fmt::format("  warn:  {}\n", Escape(Text(f["warning"])));
    if (!Text(f["reason"]).empty()) out += fmt::format("  why:   {} ({})\n", Escape(Text(f["reason"])), Text(f["code"]));
    if (!Text(f["fix"]).empty()) out += fmt::format("  fix:   {}\n", Escape(Text(f["fix"])));
  }
  if (report["plugins"].empty()) out += "found     no backend: `mge plugins paths` lists the searched directories\n";
  return out + fmt::format("{} passed, {} failed\n", report["passed"].get<int>(), report["troubled"].get<int>());
}

int Run(const Globals& globals, const Options& o) {
  if (!o.probe.empty()) return ProbeBackend(globals, o.probe);
  RuntimeOptions options = OptionsOf(globals);
  if (!o.release.empty()) {
    if (Status s = Plugins::Release(options, o.release); !s.ok()) return Report(globals, s);
    Talk(globals, fmt::format("removed {} from quarantine\n", Escape(o.release)));
  }
  std::string text;
  if (Status s = Plugins::Verify(options, "", &text); !s.ok()) return Report(globals, s);
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
  app.add_option("--timeout", o->timeout_s, "Time limit in seconds for the start of a backend and for each operator")
      ->check(Between(0.1, 3600));
  app.add_option("--release", o->release, "NAME: removes this backend from quarantine first");
  app.add_option("--probe", o->probe, "FILE: runs the test of one file in this process")->group("");
  return [&globals, o] { return Run(globals, *o); };
}

}  // namespace mge::cli
