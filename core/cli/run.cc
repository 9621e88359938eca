// SPDX-License-Identifier: Apache-2.0
// mge run: runs a model once, and shows its outputs, writes them, or compares them with a test_data_set folder or with
// another device's outputs.
#include <filesystem>
#include <optional>
#include <set>

#include "core/cli/common.h"
#include "core/cli/compare.h"
#include "core/cli/data_set.h"
#include "core/cli/digest.h"
#include "core/cli/inputs.h"
#include "core/cli/watchdog.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

struct RunOptions {
  std::string model;
  InputOptions inputs;
  std::string output_dir, dump_dir;
  std::string check, against;
  double timeout = 0;
  bool digest = false;
  std::optional<double> rtol, atol;

  Tolerance tolerance() const {
    const Tolerance fallback = against.empty() ? Tolerance() : kBetweenDevices;
    return {rtol.value_or(fallback.relative), atol.value_or(fallback.absolute)};
  }
};

// Returns the first values of a tensor as text; of another value, those of its first part. A map shows keys, then values.
std::string ShowSummary(const Tensor& t) {
  if (t.kind() != MGE_VALUE_TENSOR) {
    Tensor first, second;
    if (t.part_count() == 0 || !t.Part(0).MoveTo(first).ok()) return "";
    if (t.kind() != MGE_VALUE_MAP) return ShowSummary(first) + (t.part_count() > 1 ? " ..." : "");
    return t.Part(1).MoveTo(second).ok() ? fmt::format("{{{}: {}}}", ShowSummary(first), ShowSummary(second)) : "";
  }
  std::string out;
  uint64_t shown = std::min<uint64_t>(t.elements(), 6);
  auto add = [&](auto span) {
    for (uint64_t i = 0; i < shown; ++i) out += fmt::format("{}{}", i ? " " : "", span[i]);
  };
  switch (t.dtype()) {
    case MGE_DTYPE_F32:
      for (uint64_t i = 0; i < shown; ++i) out += fmt::format("{}{:.6g}", i ? " " : "", t.data<float>()[i]);
      break;
    case MGE_DTYPE_F64: add(t.data<double>()); break;
    case MGE_DTYPE_I64: add(t.data<int64_t>()); break;
    case MGE_DTYPE_I32: add(t.data<int32_t>()); break;
    case MGE_DTYPE_BOOL: add(t.data<bool>()); break;
    case MGE_DTYPE_STRING:
      for (uint64_t i = 0; i < shown; ++i) out += fmt::format("{}'{}'", i ? " " : "", Escape(t.string(i)));
      break;
    default: return "";
  }
  return shown < t.elements() ? out + " ..." : out;
}

// Returns an output's name without characters that could leave the directory or control a terminal: '_' replaces them.
std::string PlainName(std::string_view name) {
  std::string out;
  for (char c : name) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || (c == '.' && !out.empty());
    out += plain ? c : '_';
  }
  if (out.size() > 200) out.resize(200);
  return out.empty() ? "output" : out;
}

// Returns a file name for each output. The names differ: of outputs such as a:0 and a_0, one gets a number.
std::vector<std::string> FileNames(const Session& session) {
  std::vector<std::string> names(session.output_count());
  std::set<std::string> taken;
  for (const bool unchanged : {true, false}) {  // names that need no change come first
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string plain = PlainName(session.output(i).name());
      if ((plain == session.output(i).name()) != unchanged) continue;
      names[i] = plain + ".npy";
      for (int number = 2; !taken.insert(names[i]).second; ++number) names[i] = fmt::format("{}_{}.npy", plain, number);
    }
  }
  return names;
}

Status RunOnce(const Globals& globals, const RunOptions& o, Session& session, const std::vector<Tensor>& inputs,
               std::vector<Tensor>* outputs) {
  auto control = RunControl::Create();
  if (!control.ok()) return control.status();
  control->SetTimeout(o.timeout);
  Watchdog dog(globals, *control);
  return session.Run(Pointers(inputs), *outputs, {.control = &*control});
}

int RunModel(const Globals& globals, const RunOptions& o) {
  Runtime runtime, alone;
  Session session, other;
  Globals dumping = globals;
  if (!o.dump_dir.empty()) dumping.settings.push_back("debug.dump_dir=" + o.dump_dir);
  if (Status s = OpenModel(dumping, o.model, &runtime, &session); !s.ok()) return Report(globals, s);
  if (!o.against.empty()) {
    Runtime* there = o.against == "host" ? &alone : &runtime;  // "host" has other settings
    if (Status s = OpenModel(OnDevice(globals, o.against), o.model, there, &other); !s.ok()) return Report(globals, s);
  }
  std::vector<Tensor> inputs, outputs, expected;
  InputFacts facts;
  if (!o.check.empty()) {
    if (Status s = ReadDataSet(session, o.check, &inputs, &expected); !s.ok()) return Report(globals, s);
    if (inputs.size() != session.input_count()) {
      return ReportUsage(globals,
                         fmt::format("'{}' has {} inputs, the model has {}", o.check, inputs.size(), session.input_count()));
    }
    if (Status s = RunOnce(globals, o, session, inputs, &outputs); !s.ok()) return Report(globals, s);
  } else {
    int usage = 0;
    auto run = [&](const std::vector<Tensor>& now) { return RunOnce(globals, o, session, now, &outputs); };
    if (Status s = MakeInputsAndRun(globals, session, o.inputs, run, outputs, &inputs, &usage, &facts); !s.ok()) {
      return Report(globals, s);
    }
    if (usage) return usage;
  }
  if (!o.against.empty()) {
    if (Status s = RunOnce(globals, o, other, inputs, &expected); !s.ok()) return Report(globals, s);
  }

  mge_memory_facts totals = {};  // read before Plan(), which also plans bodies that did not run
  if (Status s = session.Memory().MoveTo(totals); !s.ok()) return Report(globals, s);
  const uint32_t reference = totals.reference_steps, steps = totals.steps;
  std::string plan_text;
  if (Status s = session.Plan(Pointers(inputs), "mge.plan/1", false).MoveTo(plan_text); !s.ok()) return Report(globals, s);
  const std::string device = Json::parse(plan_text)["device"];

  Json rows = Json::array();
  std::vector<std::vector<std::string>> table = {{"OUTPUT", "TYPE", "VALUES"}}, compared = {ComparisonHead("OUTPUT")};
  const std::vector<std::string> files = FileNames(session);
  if (!o.output_dir.empty()) {
    std::error_code ec;
    std::filesystem::create_directories(o.output_dir, ec);
  }
  bool differs = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string name(session.output(i).name());
    Json row = {{"name", name}, {"type", TypeText(outputs[i])}, {"values", ShowSummary(outputs[i])}};
    std::string look = ShowSummary(outputs[i]);
    if (!o.output_dir.empty() && outputs[i].kind() == MGE_VALUE_TENSOR) {
      std::string path = o.output_dir + "/" + files[i];
      if (Status s = outputs[i].WriteNpy(path); !s.ok()) return Report(globals, s);
      row["file"] = path;
      look += " -> " + path;
    }
    if (i < expected.size()) {
      const Comparison c = Compare(outputs[i], expected[i], o.tolerance());
      row["difference"] = Sentence(c);
      row["comparison"] = ToJson(c);
      compared.push_back(ComparisonRow(name, c));
      differs |= !c.ok();
    }
    rows.push_back(std::move(row));
    table.push_back({name, TypeText(outputs[i]), look});
  }
  std::string digest;
  if (o.digest) {
    if (Status s = DigestOf(session, outputs, &digest); !s.ok()) return Report(globals, s);
  }
  if (globals.json) {
    Json report = {{"schema", "mge.run/1"},
                   {"device", device},
                   {"steps", steps},
                   {"reference_steps", reference},
                   {"engine_operations", totals.engine_operations},
                   {"inputs", std::move(facts.rows)},
                   {"outputs", std::move(rows)}};
    if (o.digest) report["digest"] = digest;
    PrintJson(report);
  } else {
    Print(Table(table));
    if (o.digest) Print("digest " + digest + "\n");
    if (compared.size() > 1) Print("\n" + Table(compared));
    PrintMessage(globals, "ran on " + device);
    if (reference) {
      PrintMessage(globals, fmt::format("{} of {} steps by the slow REFERENCE evaluator; `mge plan MODEL --why` shows why",
                                        reference, steps));
    }
  }
  if (differs)
    PrintMessage(globals, fmt::format("mge: error[E{:04d}] results differ from the expected ones by more than the tolerance",
                                      errors::kMismatch.id));
  return differs ? kExitMismatch : kExitOk;
}

}  // namespace

Action DeclareRun(Arguments app, const Globals& globals) {
  auto o = std::make_shared<RunOptions>();
  app.Add("MODEL", o->model, "An ONNX file; - is standard input").Required().ValueName("FILE").IsInput();
  o->inputs.Declare(app);
  app.Add("--output-dir", o->output_dir, "Writes every output there as .npy").ValueName("FOLDER");
  const Argument check =
      app.Add("--check", o->check, "A test_data_set folder with the inputs and the expected outputs").ValueName("FOLDER");
  const Argument against =
      app.Add("--against", o->against, "A device whose outputs are the expected ones; host: the reference evaluators")
          .ValueName("DEVICE")
          .Excludes(check);
  app.Add("--dump-dir", o->dump_dir,
          "Writes every value that a step computes there as ID_NAME.npy; with the setting debug.dump_inputs also its inputs")
      .ValueName("FOLDER")
      .Excludes(against);
  app.AddFlag("--digest", o->digest, "Shows one SHA-256 of all outputs: names, types, shapes and bytes");
  app.Add("--timeout", o->timeout, "Time limit of the run in seconds, planning included").Between(0, 1e9);
  const Tolerance check_default;
  auto tolerance = [&](const char* name, std::optional<double>& value, std::string what, double one, double other) {
    app.Add(name, value, fmt::format("{} tolerance: {} for --check, {} for --against", what, one, other)).Between(0, 1e9);
  };
  tolerance("--rtol", o->rtol, "Relative", check_default.relative, kBetweenDevices.relative);
  tolerance("--atol", o->atol, "Absolute", check_default.absolute, kBetweenDevices.absolute);
  return [&globals, o] { return RunModel(globals, *o); };
}

}  // namespace mge::cli
