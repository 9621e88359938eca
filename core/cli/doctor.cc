// SPDX-License-Identifier: Apache-2.0
// mge doctor: tests every backend in its own process, and puts a backend that crashes or hangs at its start into quarantine.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ranges>
#include <sstream>

#include "core/cli/common.h"
#include "core/cli/doctor_page.h"
#include "core/cli/page_file.h"
#include "core/cli/unexpected.h"
#include "core/cli/zoo/model_writer.h"
#include "core/html/page.h"
#include "core/process/child.h"
#include "fmt/ranges.h"

namespace mge::cli {
namespace {

constexpr std::string_view kFirstStage = "starting";            // a failure in this stage leads to quarantine
constexpr std::string_view kLastStage = "leaving the process";  // static objects and exit handlers run after it

// An operator with its expected results, which are small whole numbers: every floating-point type represents them exactly.
struct Operator {
  const char* name;
  size_t inputs;  // number of inputs; each is kInput
  std::vector<float> expected;
};
const std::vector<float> kInput = {-1, 2, -3, 4};
const Operator kOperators[] = {
    {"Relu", 1, {0, 2, 0, 4}},    {"Add", 2, {-2, 4, -6, 8}}, {"Mul", 2, {1, 4, 9, 16}},  {"MatMul", 2, {-5, 6, -9, 10}},
    {"Gemm", 2, {-5, 6, -9, 10}}, {"Sub", 2, {0, 0, 0, 0}},   {"Neg", 1, {1, -2, 3, -4}}, {"Abs", 1, {1, 2, 3, 4}},
};

struct DoctorOptions {
  double timeout_s = 5;
  std::string end_quarantine, page;
  bool collective = false;  // check the processes of a launcher instead
};

// Runs the operator on the device of the row and completes the row. Returns false if the device has no kernel for it.
bool TryOperator(Runtime& runtime, const Operator& op, Json& row) {
  ModelWriter model(op.name, {.seed = 0});
  model.Node(op.name, std::vector<std::string>(op.inputs, model.Input("x", {2, 2})), {}, "y");
  model.Output("y", {2, 2});
  const std::string bytes = model.Finish();
  SessionOptions options;
  options.device = row["name"];
  Session session;
  Tensor input;
  const Tensor* inputs[] = {&input};
  std::vector<Tensor> outputs;
  std::string plan = "{}", wrong, fix;
  Status s = Session::LoadBytes(runtime, bytes.data(), bytes.size(), options).MoveTo(session);
  if (s.ok()) s = Tensor::Of<float>(std::vector<int64_t>{2, 2}, kInput).MoveTo(input);
  if (s.ok()) s = session.Plan(inputs, "mge.plan/1", false).MoveTo(plan);
  const bool is_used = std::ranges::any_of(Json::parse(plan)["units"], [&](const Json& unit) {
    return unit["kind"] == "kernel" && unit["device"] == row["name"];  // and not the host's reference evaluator
  });
  if (s.exit_code() == ExitCode(ErrorKind::kUnsupported) || (s.ok() && !is_used)) return false;
  if (s.ok()) s = session.Run({&input}, outputs);
  if (!s.ok()) {
    wrong = s.what().empty() ? std::string(s.title()) : fmt::format("{}: {}", s.title(), s.what());
    fix = s.fix();
  } else if (const auto [got, want] = std::ranges::mismatch(outputs[0].data<float>(), op.expected);
             want != op.expected.end()) {
    wrong = fmt::format("{} gives {} at element {} instead of {}", op.name, *got, want - op.expected.begin(), *want);
    fix = "do not use this device; report it to the author of the backend";
  }
  row.update({{"operator", op.name}, {"reason", wrong}, {"fix", fix}});
  row.update({{"state", wrong.empty() ? "passed" : "loadable"}, {"troubled", !wrong.empty()}});
  return true;
}

// Tests the backend in `file` in this child process. `skip` is the setting that leaves out all others. Writes lines to
// `report` before each stage, which may kill or hang the process: each is the row of the file so far.
void TryBackend(const Globals& globals, const std::string& file, const std::string& skip, int report) {
  LeaveFaults();
  Json row = Json::object();
  auto enter = [&](std::string_view stage) {
    row["stage"] = stage;
    if (dprintf(report, "%s\n", row.dump(-1, ' ', false, Json::error_handler_t::replace).c_str()) < 0) _exit(1);
  };
  auto run = [&] {
    RuntimeOptions options = OptionsOf(globals);
    options.settings = {"debug.check_memory=1",  // names a kernel that writes outside of its output
                        "plan.host_compute=0"};  // the host would compute so few elements
    options.command_line.insert(options.command_line.end(),
                                {skip, "plugin.start_timeout_seconds=unlimited"});  // the parent limits it
    Runtime runtime;
    Json settings, plugins, devices;
    Status s = Runtime::Create(options).MoveTo(runtime);
    if (s.ok()) s = ReadReport(runtime, "mge.env/1", &settings);  // starts it
    if (s.ok()) s = ReadReport(runtime, "mge.plugins/1", &plugins);
    for (const Json& own : plugins["files"]) {
      if (own["path"] != file) continue;
      for (const char* key : {"verdict", "code", "reason", "fix"}) row[key] = own[key];
    }
    if (!s.ok() || row.value("verdict", "") != "loaded") return s;
    enter("opening its devices");
    if (s = ReadReport(runtime, "mge.devices/1", &devices); !s.ok()) return s;
    for (const Json& device : devices["devices"]) {
      if (device["name"] == "host") continue;
      enter(fmt::format("running an operator on {}", Text(device["name"])));
      const bool opens = device["state"] == "loadable";
      Json tried = {{"troubled", !opens && device["usable"]}, {"operator", ""}, {"fix", ""}};
      for (const char* key : {"name", "class", "state", "reason"}) tried[key] = device[key];
      tried["compilers"] = device["properties"].value("compilers", "");  // replaced by ProbeCompilers()
      if (opens && std::ranges::none_of(kOperators, [&](const Operator& op) { return TryOperator(runtime, op, tried); })) {
        const auto names = kOperators | std::views::transform(&Operator::name);
        tried["reason"] = fmt::format("it has no kernel for any of {}, so nothing was run", fmt::join(names, ", "));
        tried["fix"] = fmt::format("to test the kernels that it has: mge sdk test '{}'", file);
      }
      row["devices"].push_back(std::move(tried));
    }
    enter("stopping");
    return s;
  };
  enter(kFirstStage);
  if (Status s = run(); !s.ok()) {
    row.update({{"verdict", "refused"}, {"code", "bad_setting"}, {"reason", s.title()}, {"fix", s.fix()}});
  }
  enter(kLastStage);
  std::exit(0);
}

// Returns why no step of the plan has code of the compiler, or an empty text if one has.
std::string WhyNotUsed(const Json& plan, const std::string& compiler) {
  const std::string refusal = "no code of " + compiler + ": ";
  std::string why = "its plan names no reason";
  for (const Json& unit : plan["units"]) {
    if (unit["kernel"].get_ref<const std::string&>().find("." + compiler) != std::string::npos) return "";
    for (const Json& other : unit["alternatives"]) {
      if (const std::string reason = Text(other["reason"]); reason.starts_with(refusal)) why = reason.substr(refusal.size());
    }
  }
  return why;
}

// Runs a chain of operators on the device in this child process with a compiler of jit.backend. Writes {"reason": what is wrong} to
// `report`; the reason is empty if nothing is.
void TryCompiler(const Globals& globals, const std::string& device, const std::string& compiler, int report) {
  LeaveFaults();
  RuntimeOptions options = OptionsOf(globals);
  options.settings = {"plan.host_compute=0", "cache.bytes=0", "jit.backend=" + compiler};
  ModelWriter model(compiler, {.seed = 0});
  model.Node("Neg", {model.Input("x", {2, 2})}, {}, "t");
  model.Node("Relu", {"t"}, {}, "y");
  model.Output("y", {2, 2});
  const std::string bytes = model.Finish();
  const std::vector<float> expected = {1, 0, 3, 0};
  SessionOptions session_options;
  session_options.device = device;
  Runtime runtime;
  std::string wrong;
  Status s = Runtime::Create(options).MoveTo(runtime);
  for (int round = 0; round < 2 && s.ok() && wrong.empty(); ++round) {  // a plan does not use a compiler that has failed
    Session session;
    Tensor input;
    const Tensor* inputs[] = {&input};
    std::vector<Tensor> outputs;
    std::string plan = "{}";
    s = Session::LoadBytes(runtime, bytes.data(), bytes.size(), session_options).MoveTo(session);
    if (s.ok()) s = Tensor::Of<float>(std::vector<int64_t>{2, 2}, kInput).MoveTo(input);
    if (s.ok()) s = session.Plan(inputs, "mge.plan/1", false).MoveTo(plan);
    if (s.ok()) s = session.Run({&input}, outputs);
    if (!s.ok()) break;
    wrong = WhyNotUsed(Json::parse(plan), compiler);
    if (wrong.empty() && !std::ranges::equal(outputs[0].data<float>(), expected)) wrong = "its code gives wrong numbers";
  }
  if (!s.ok()) wrong = s.what().empty() ? std::string(s.title()) : fmt::format("{}: {}", s.title(), s.what());
  const std::string line = Json{{"reason", wrong}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::exit(dprintf(report, "%s\n", line.c_str()) < 0 ? 1 : 0);
}

// Tests each compiler that a device of the row lists in a child process: it may abort.
void ProbeCompilers(const Globals& globals, const DoctorOptions& o, Json& row) {
  constexpr double kCompileSeconds = 30;
  for (Json& device : row["devices"]) {
    std::istringstream names(device.value("compilers", ""));
    device["compilers"] = Json::array();
    for (std::string name; names >> name;) {
      const double limit = std::max(o.timeout_s, kCompileSeconds);
      const auto child = Child::Fork([&](int report) { TryCompiler(globals, Text(device["name"]), name, report); }, limit);
      Json said;
      child->ReadToEnd([&] {
        for (const std::string& line : child->TakeLines()) said = Json::parse(line, nullptr, false);
        return true;
      });
      std::string wrong = child->end().Describe(limit);
      if (child->end().fine()) wrong = said.is_object() ? said.value("reason", "") : "it ended without a result";
      row["troubled"] = row["troubled"].get<bool>() || !wrong.empty();
      const std::string fix =
          wrong.empty() ? "" : "install its package mge-jit-" + name + " again, or do not set jit.backend to it";
      device["compilers"].push_back(
          {{"name", name}, {"state", wrong.empty() ? "passed" : "failed"}, {"reason", wrong}, {"fix", fix}});
    }
  }
}

// Tests an accepted file in a child process and completes its row.
void Probe(const Globals& globals, const DoctorOptions& o, const std::string& skip, Json& row) {
  const std::string path = Text(row["path"]), name = Text(row["name"]);
  const auto child = Child::Fork([&](int report) { TryBackend(globals, path, skip, report); }, o.timeout_s);
  child->ReadToEnd([&] {
    for (const std::string& line : child->TakeLines()) {
      const Json said = Json::parse(line, nullptr, false);
      if (!said.is_object() || !said.contains("stage")) continue;  // the backend has written it
      row.update(said);
      child->LimitTo(o.timeout_s);
    }
    return true;
  });
  const ChildEnd& end = child->end();
  const std::string stage = row.value("stage", ""), ending = end.Describe(o.timeout_s);
  row.erase("stage");
  auto any = [&](const char* key, const Json& value) {
    return std::ranges::any_of(row["devices"], [&](const Json& device) { return device[key] == value; });
  };
  const bool whole = end.fine() && stage == kLastStage;  // false also if the backend called exit(0)
  const bool failed = any("troubled", true), passed = whole && !failed && any("state", "passed");
  row["state"] = row["verdict"] != "loaded" ? "found" : passed ? "passed" : "loadable";
  row["troubled"] = !whole || failed || row["verdict"] == "refused";
  auto say = [&row](std::string_view code, std::string reason, std::string fix) {
    row.update({{"code", code}, {"reason", std::move(reason)}, {"fix", std::move(fix)}});
  };
  const bool threw = row["code"] == "open_threw";  // handled like a crash, because it would end any process
  if (stage.empty())
    return say("not_probed", fmt::format("it could not be tested: {}, before any code of the backend ran", ending),
               "raise the limits of the process (see ulimit -n, -u and -v), then run mge doctor again");
  if (!whole && !threw)
    say(end.timed_out ? "timed_out" : "crashed", fmt::format("{} while {}", ending, stage),
        fmt::format("report it to the author of backend '{}', or remove the file", name));
  if (!threw && (whole || stage != kFirstStage)) return;
  const std::string reason = Text(row["reason"]);
  if (Status s = Plugins::Quarantine(OptionsOf(globals), path, reason); !s.ok())
    return void(row["reason"] = fmt::format("{}; it could not be put into quarantine: {}", reason, s.what()));
  row.update({{"verdict", "refused"}, {"quarantined", true}, {"code", "quarantined"}});
  row["fix"] = fmt::format("install another build; to test this one again: mge doctor --end-quarantine {}{}", name,
                           end.timed_out ? fmt::format(" --timeout {:.0f}, if it is only slow", 10 * o.timeout_s) : "");
}

std::string RenderReport(const Json& report) {
  std::string out;
  auto add = [&out](std::string_view label, const Json& text, std::string_view code = "") {
    if (!Text(text).empty()) out += fmt::format("  {:<6} {}{}\n", label, Escape(Text(text)), code);
  };
  for (const Json& f : report["plugins"]) {
    out += fmt::format("{:<9} {}", Text(f["state"]), Escape(Text(f["path"])));
    if (!Text(f["name"]).empty()) out += fmt::format(" ({} {})", Escape(Text(f["name"])), Escape(Text(f["version"])));
    out += "\n";
    for (const Json& d : f["devices"]) {
      const std::string ran = Text(d["state"]) == "passed" ? Text(d["operator"]) + " runs" : Escape(Text(d["reason"]));
      out += fmt::format("  {:<9} {}: {}\n", Text(d["state"]), Escape(Text(d["name"])), ran);
      add("fix:", d["fix"]);
      for (const Json& c : d["compilers"]) {
        out += fmt::format("  {:<9} {} with the compiler {}\n", Text(c["state"]), Escape(Text(d["name"])), Text(c["name"]));
        add("why:", c["reason"]);
        add("fix:", c["fix"]);
      }
    }
    if (const auto [note, advice] = NoteOnDevices(f); !note.empty()) {
      out += fmt::format("  {}\n", note);
      add("fix:", advice);
    }
    if (f["verdict"] == "accepted" && f["classes"].empty()) {
      out += "  it connects the processes of a launcher; to test it: mpirun -n 2 mge doctor --collective\n";
    }
    add("warn:", f["warning"]);
    add("why:", f["reason"], fmt::format(" ({})", Text(f["code"])));
    add("fix:", f["fix"]);
  }
  if (report["plugins"].empty()) out += "found     no backend: `mge plugins paths` lists the searched directories\n";
  return out + fmt::format("{} passed, {} failed\n", report["passed"].get<int>(), report["troubled"].get<int>());
}

// Measures the sums over the processes of a launcher. Rank 0 shows them.
int CheckProcesses(const Globals& globals) {
  Runtime runtime;
  Json report;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  if (Status s = ReadReport(runtime, "mge.collective/1", &report); !s.ok()) return Report(globals, s);
  if (report["rank"] != 0) return kExitOk;
  if (globals.json) {
    PrintJson(report);
    return kExitOk;
  }
  std::string out = fmt::format("{} processes by {}, connected by {}\n", Text(report["ranks"]), Text(report["launcher"]),
                                Text(report["library"]));
  for (const Json& name : report["processes"]) out += fmt::format("  {}\n", Escape(Text(name)));
  std::vector<std::vector<std::string>> table = {{"SUM OF", "TIME", "BYTES/S"}};
  for (const Json& sum : report["sums"]) {
    table.push_back({HumanBytes(sum["bytes"].get<uint64_t>()), DurationText(1e6 * sum["seconds"].get<double>()),
                     HumanBytes(static_cast<uint64_t>(sum["bytes_per_second"].get<double>()))});
  }
  Print(out + Table(table));
  return kExitOk;
}

// Returns the settings that are not at their defaults, or null if they cannot be read. A child process reads them, because
// they need the start of all backends.
Json ChangedSettings(const Globals& globals, const DoctorOptions& o) {
  auto read = [&](int report) {
    LeaveFaults();
    Globals quiet = globals;
    quiet.quiet = true;
    Runtime runtime;
    Json settings, changed = Json::array();
    if (!MakeRuntime(quiet, &runtime).ok() || !ReadReport(runtime, "mge.env/1", &settings).ok()) _exit(1);
    for (const Json& s : settings["settings"]) {
      if (s["origin"] != "default") changed.push_back({{"key", s["key"]}, {"value", s["value"]}, {"origin", s["origin"]}});
    }
    const Json line = {{"changed", std::move(changed)}};
    if (dprintf(report, "%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str()) < 0) _exit(1);
    _exit(0);
  };
  Json out;
  const auto child = Child::Fork(read, 4 * o.timeout_s);
  child->ReadToEnd([&] {
    for (const std::string& line : child->TakeLines()) {
      const Json said = Json::parse(line, nullptr, false);
      if (said.is_object() && said.contains("changed")) out = said["changed"];
    }
    return true;
  });
  return out;
}

int RunDoctor(const Globals& globals, const DoctorOptions& o) {
  if (int code = CheckPagePath(globals, o.page)) return code;
  if (o.collective) return CheckProcesses(globals);
  const RuntimeOptions options = OptionsOf(globals);
  if (!o.end_quarantine.empty()) {
    if (Status s = Plugins::EndQuarantine(options, o.end_quarantine); !s.ok()) return Report(globals, s);
    PrintMessage(globals, fmt::format("removed {} from quarantine\n", Escape(o.end_quarantine)));
  }
  std::string text;
  if (Status s = Plugins::Verify(options, "").MoveTo(text); !s.ok()) return Report(globals, s);
  const Json files = Json::parse(text)["files"];
  Json rows = Json::array();
  int passed = 0, troubled = 0;
  Progress progress(globals, "probing backends", files.size());
  for (const Json& file : files) {
    Json row = file;
    row.update({{"state", "found"}, {"quarantined", file["code"] == "quarantined"}, {"devices", Json::array()}});
    row["troubled"] = file["verdict"] == "refused";
    if (file["verdict"] == "accepted" && !file["classes"].empty()) {  // without classes, it is a transport
      std::string skip = "plugin.skip=";                              // the other backends
      for (const Json& other : files) {
        if (other["name"] != file["name"]) skip += Text(other["name"]) + ",";
      }
      Probe(globals, o, skip, row);
      ProbeCompilers(globals, o, row);
    }
    passed += row["state"] == "passed";
    troubled += row["troubled"].get<bool>();
    rows.push_back(std::move(row));
    progress.Step(rows.size());
  }
  const Json report = {{"schema", "mge.doctor/1"},
                       {"timeout_s", o.timeout_s},
                       {"passed", passed},
                       {"troubled", troubled},
                       {"plugins", std::move(rows)},
                       {"system", SystemFacts()},
                       {"changed_settings", ChangedSettings(globals, o)}};
  if (!o.page.empty()) {
    if (int code = WritePage(globals, o.page, html::Page("MGE on this machine", DoctorBody(report)))) return code;
  }
  globals.json ? PrintJson(report) : Print(RenderReport(report));
  return passed > 0 && troubled == 0 ? kExitOk : kExitDevice;
}

}  // namespace

Action DeclareDoctor(Arguments app, const Globals& globals) {
  auto o = std::make_shared<DoctorOptions>();
  app.Add("--timeout", o->timeout_s, "Time limit in seconds for the start of a backend and for each operator")
      .Between(0.1, 3600);
  const Argument collective =
      app.AddFlag("--collective", o->collective,
                  "Instead, checks and measures sums over the processes of a launcher: mpirun -n 2 mge doctor --collective");
  AddPageOption(app, o->page,
                "Writes a page for a browser there, which needs no network: the tests, the system and the changed settings, "
                "for the report of a fault")
      .Excludes(collective);
  app.Add("--end-quarantine", o->end_quarantine, "NAME: removes this backend from quarantine first");
  return [&globals, o] { return RunDoctor(globals, *o); };
}

}  // namespace mge::cli
