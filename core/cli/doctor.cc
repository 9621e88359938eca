// SPDX-License-Identifier: Apache-2.0
// mge doctor: tests every backend in its own process, and puts a backend that crashes or hangs at its start into quarantine.
#include <unistd.h>

#include <cerrno>

#include "core/base/errno_text.h"
#include "core/base/file.h"
#include "core/cli/common.h"
#include "core/cli/zoo/model_writer.h"
#include "core/process/child.h"
#include "core/worker/probe.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

using worker::kFirstStage;
using worker::kLastStage;

constexpr int kExitDevice = 5;

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

Json OperatorsToTry() {
  Json out = Json::array();
  for (const Operator& op : kOperators) {
    ModelWriter model(op.name, 0);
    model.Node(op.name, std::vector<std::string>(op.inputs, model.Input("x", {2, 2})), {}, "y");
    model.Output("y", {2, 2});
    const std::string bytes = model.Finish();
    out.push_back({{"name", op.name},
                   {"model", Json::binary(std::vector<uint8_t>(bytes.begin(), bytes.end()))},
                   {"input", kInput},
                   {"expected", op.expected}});
  }
  return out;
}

struct DoctorOptions {
  double timeout_s = 5;
  std::string release;
};

// Lets mge-worker (`worker`) test one file and copies its report to the row. `request` lacks the file.
ChildEnd TestInChild(const std::string& worker, double timeout_s, Json request, Json& row) {
  request["file"] = row["path"];
  std::string bytes;
  Json::to_cbor(request, bytes);
  const std::unique_ptr<Child> child = Child::Execute(worker, "probe", bytes, timeout_s);
  if (!child) return {errno, false, -1, 0, {}};
  child->ReadToEnd([&] {
    for (size_t end; (end = child->report.find('\n')) != std::string::npos; child->report.erase(0, end + 1)) {
      const Json said = Json::parse(child->report.substr(0, end), nullptr, false);
      if (!said.is_object() || !said.contains("stage")) continue;  // the backend has written it
      row.update(said);
      child->LimitTo(timeout_s);
    }
  });
  return child->end();
}

// Tests an accepted file and completes its row.
void Probe(const Globals& globals, const DoctorOptions& o, const std::string& worker, const Json& request, Json& row) {
  const std::string path = Text(row["path"]), name = Text(row["name"]);
  const ChildEnd end = TestInChild(worker, o.timeout_s, request, row);
  const std::string stage = row.value("stage", "");
  row.erase("stage");
  bool failed = false, ran = false;
  for (const Json& d : row["devices"]) {
    failed |= d["troubled"].get<bool>();
    ran |= Text(d["state"]) == "passed";
  }
  const bool whole = end.fine() && stage == kLastStage;  // false also if the backend called exit(0)
  row["state"] = Text(row["verdict"]) != "loaded" ? "found" : whole && ran && !failed ? "passed" : "loadable";
  row["troubled"] = !whole || failed || Text(row["verdict"]) == "refused";
  const bool threw = Text(row["code"]) == "open_threw";  // handled like a crash, because it would end any process
  if (whole && !threw) return;
  if (stage.empty()) {  // no code of the backend has run
    row["code"] = "not_probed";
    row["reason"] = fmt::format("it could not be tested: {}, before any code of the backend ran", end.Describe(o.timeout_s));
    row["fix"] = "raise the limits of the process (see ulimit -n, -u and -v), then run mge doctor again";
    return;
  }
  if (!threw) {
    row["code"] = end.timed_out ? "timed_out" : "crashed";
    row["reason"] = fmt::format("{} while {}", end.Describe(o.timeout_s), stage);
    row["fix"] = fmt::format("report it to the author of backend '{}', or remove the file", name);
    if (stage != kFirstStage) return;
  }
  if (Status s = Plugins::Quarantine(OptionsOf(globals), path, Text(row["reason"])); !s.ok()) {
    row["reason"] = fmt::format("{}; it could not be put into quarantine: {}", Text(row["reason"]), s.what());
    return;
  }
  row.update({{"verdict", "refused"}, {"code", "quarantined"}, {"quarantined", true}});
  row["fix"] = fmt::format("install another build; to test this one again: mge doctor --release {}", name);
  if (end.timed_out && !threw) {
    row["fix"] = fmt::format("{} --timeout {:.0f}, if it is only slow", Text(row["fix"]), 10 * o.timeout_s);
  }
}

std::string Render(const Json& report) {
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
    }
    if (f["on_demand"] != "") out += "  it creates devices only on demand: tested with --set " + Text(f["on_demand"]) + "\n";
    if (f["verdict"] == "loaded" && f["devices"].empty() && f["troubled"] == false) out += "  it has no device\n";
    add("warn:", f["warning"]);
    add("why:", f["reason"], fmt::format(" ({})", Text(f["code"])));
    add("fix:", f["fix"]);
  }
  if (report["plugins"].empty()) out += "found     no backend: `mge plugins paths` lists the searched directories\n";
  return out + fmt::format("{} passed, {} failed\n", report["passed"].get<int>(), report["troubled"].get<int>());
}

int RunDoctor(const Globals& globals, const DoctorOptions& o) {
  RuntimeOptions options = OptionsOf(globals);
  if (!o.release.empty()) {
    if (Status s = Plugins::Release(options, o.release); !s.ok()) return Report(globals, s);
    Talk(globals, fmt::format("removed {} from quarantine\n", Escape(o.release)));
  }
  const std::string worker = ProgramPath("mge-worker");
  if (access(worker.c_str(), X_OK) != 0) {
    return Report(globals, Fail(errors::kFileAccess, worker + " cannot be run",
                                {.what = ErrnoText(errno), .fix = "install all of MGE, or build its target `product`"}));
  }
  EndChildrenBySignals();
  std::string text;
  if (Status s = Plugins::Verify(options, "", &text); !s.ok()) return Report(globals, s);
  Json found = Json::parse(text), rows = Json::array();
  Json request = {
      {"config_files", globals.config_files}, {"plugin_directories", Json::array()}, {"operators", OperatorsToTry()}};
  for (const Json& d : found["directories"]) request["plugin_directories"].push_back(d["path"]);
  int passed = 0, troubled = 0;
  Progress progress(globals, "probing backends", found["files"].size());
  for (const Json& file : found["files"]) {
    Json row = {{"state", "found"}};
    row.update(file);
    row["quarantined"] = Text(row["code"]) == "quarantined";
    row["troubled"] = Text(row["verdict"]) == "refused";
    row["devices"] = Json::array();
    row["on_demand"] = "";
    std::string others;
    for (const Json& other : found["files"]) {
      if (other["name"] != file["name"] && other["name"] != "") others += (others.empty() ? "" : ",") + Text(other["name"]);
    }
    std::vector<std::string> settings = globals.settings;
    settings.push_back("plugin.skip=" + others);
    request["settings"] = std::move(settings);
    if (Text(row["verdict"]) == "accepted") Probe(globals, o, worker, request, row);
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

Action DeclareDoctor(Arguments app, const Globals& globals) {
  auto o = std::make_shared<DoctorOptions>();
  app.Add("--timeout", o->timeout_s, "Time limit in seconds for the start of a backend and for each operator")
      .Between(0.1, 3600);
  app.Add("--release", o->release, "NAME: removes this backend from quarantine first");
  return [&globals, o] { return RunDoctor(globals, *o); };
}

}  // namespace mge::cli
