// SPDX-License-Identifier: Apache-2.0
// mge compare: compares the outputs of a model with those of another model, device or runtime. With --layers, compares the
// values of all nodes.
#include <algorithm>
#include <map>
#include <optional>

#include "core/cli/compare.h"
#include "core/cli/inputs.h"
#include "core/cli/onnxruntime.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr size_t kMaxRows = 20;

struct CompareOptions {
  std::string first, second;
  InputOptions inputs;
  std::string against, with, python = "python3";
  bool layers = false, all = false;
  Tolerance tolerance = kBetweenDevices;
  std::vector<std::string> skip;
};

// A value of the first model, and the node that computes it.
struct Place {
  std::string value, node, op;
};

// The results of one model, by name.
struct Side {
  std::string title;  // "a.onnx on cpu0"
  std::vector<NamedTensor> values;

  const Tensor* Find(const std::string& name) const {
    for (const NamedTensor& v : values) {
      if (v.name == name && v.tensor) return &v.tensor;
    }
    return nullptr;
  }
};

struct Row {
  Place place;
  Comparison comparison;
};

// The options, and the inputs of the first model, which both models get.
struct Task {
  const Globals& globals;
  const CompareOptions& o;
  std::vector<std::string> input_names = {};
  std::vector<Tensor> inputs = {};
  int threads = 1;
};

Status Nodes(const Globals& globals, const std::string& model, std::vector<Place>* out) {
  Runtime runtime;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return s;
  std::string text;
  if (Status s = runtime.ModelReport(model, "mge.nodes/1").MoveTo(text); !s.ok()) return s;
  const Json report = Json::parse(text);
  for (const Json& node : report["nodes"]) {
    for (const Json& value : node["outputs"]) {
      if (value != "") out->push_back({value, node["name"], node["operator"]});
    }
  }
  return {};
}

std::vector<std::string> Names(const std::vector<Place>& places) {
  std::vector<std::string> out;
  for (const Place& p : places) out.push_back(p.value);
  return out;
}

// Returns the device that the session uses for these inputs.
std::string DeviceOf(const Session& session, const std::vector<const Tensor*>& inputs) {
  std::string text;
  if (!session.Plan(inputs, "mge.plan/1", false).MoveTo(text).ok()) return "?";
  return Json::parse(text)["device"];
}

// Runs a model in MGE. Inputs are matched by name, or by position if the name is not found.
Status RunHere(const Task& task, const Globals& globals, const std::string& model, const std::vector<std::string>& outputs,
               Side* out) {
  Runtime runtime;
  Session session;
  if (Status s = OpenModel(globals, model, &runtime, &session, task.o.skip, outputs); !s.ok()) return s;
  std::vector<const Tensor*> inputs;
  for (size_t i = 0; i < session.input_count(); ++i) {
    auto same = std::find(task.input_names.begin(), task.input_names.end(), session.input(i).name());
    const size_t place = same == task.input_names.end() ? i : static_cast<size_t>(same - task.input_names.begin());
    if (place < task.inputs.size()) inputs.push_back(&task.inputs[place]);
  }
  std::vector<Tensor> results;
  if (Status s = session.Run(inputs, results); !s.ok()) return s;
  out->title = fmt::format("{} on {}", model, DeviceOf(session, inputs));
  out->values.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string name = outputs.empty() ? std::string(session.output(i).name()) : outputs[i];
    out->values.push_back({name, std::move(results[i])});
  }
  return {};
}

int RunThere(const Task& task, const std::vector<std::string>& outputs, Side* out) {
  OnnxRuntimeRun run;
  run.python = task.o.python;
  run.model = task.o.second.empty() ? task.o.first : task.o.second;
  run.input_names = task.input_names;
  run.inputs = Pointers(task.inputs);
  run.outputs = outputs;
  run.threads = task.threads;
  std::string version;
  out->values.clear();
  if (int code = RunInOnnxRuntime(task.globals, run, &out->values, &version)) return code;
  out->title = fmt::format("{} in onnxruntime {}", run.model, version);
  return 0;
}

// Runs both sides and gets these outputs, or the models' own ones if `outputs` is empty. Returns 0, or the exit code of a
// reported error.
int RunBoth(const Task& task, const std::vector<std::string>& outputs, Side* a, Side* b) {
  const CompareOptions& o = task.o;
  if (Status s = RunHere(task, task.globals, o.first, outputs, a); !s.ok()) return Report(task.globals, s);
  if (!o.with.empty()) return RunThere(task, outputs, b);
  const std::string fallback = o.second.empty() ? "host" : task.globals.device;
  const Globals there = OnDevice(task.globals, o.against.empty() ? fallback : o.against);
  if (Status s = RunHere(task, there, o.second.empty() ? o.first : o.second, outputs, b); !s.ok()) {
    return Report(task.globals, s);
  }
  return 0;
}

// Compares the values of both sides by name, or by position if B has no value of that name and `by_place` is true.
std::vector<Row> CompareSides(const Side& a, const Side& b, bool by_place, const std::vector<Place>& places,
                              const Tolerance& tolerance) {
  std::map<std::string, const Place*> known;
  for (const Place& p : places) known.emplace(p.value, &p);
  std::vector<Row> rows;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const NamedTensor& value = a.values[i];
    const Tensor* other = b.Find(value.name);
    if (!other && by_place && i < b.values.size() && b.values[i].tensor) other = &b.values[i].tensor;
    if (!other || !value.tensor) continue;
    auto place = known.find(value.name);
    rows.push_back(
        {place == known.end() ? Place{value.name, "", ""} : *place->second, Compare(value.tensor, *other, tolerance)});
  }
  return rows;
}

Json RowJson(const Row& row) {
  Json out = {{"value", row.place.value}, {"node", row.place.node}, {"operator", row.place.op}};
  out.update(ToJson(row.comparison));
  return out;
}

std::string NodeText(const Place& p) {
  return p.node.empty() ? fmt::format("{} '{}'", p.op, Escape(p.value))
                        : fmt::format("node '{}' ({})", Escape(p.node), p.op);
}

// Returns a paragraph that describes the first difference of the layers.
std::string Parting(const std::vector<Row>& layers, const Row* first, bool outputs_differ) {
  if (first) {
    return fmt::format("first difference at {}, value '{}': {}\n", NodeText(first->place), Escape(first->place.value),
                       Sentence(first->comparison));
  }
  if (layers.empty()) return "no computed value of A has the name of a value of B\n";
  if (!outputs_differ) return fmt::format("none of {} values differs\n", layers.size());
  return fmt::format(
      "none of {} values differs if every value is kept: the difference comes from computing several nodes "
      "together; --skip PASS shows which ({})\n",
      layers.size(), "`mge plan MODEL --why` names them");
}

void PrintText(const CompareOptions& o, const Side& a, const Side& b, const std::vector<Row>& outputs,
               const std::vector<Row>& layers, const Row* first, bool differs) {
  Print(fmt::format("A  {}\nB  {}\n", Escape(a.title), Escape(b.title)));
  std::vector<std::vector<std::string>> table = {ComparisonHead("OUTPUT")};
  for (const Row& row : outputs) table.push_back(ComparisonRow(row.place.value, row.comparison));
  Print(Table(table));
  if (!o.layers) return;
  table = {ComparisonHead("NODE")};
  size_t left_out = 0;
  for (const Row& row : layers) {
    if (!o.all && row.comparison.ok()) continue;
    if (!o.all && table.size() > kMaxRows) {
      ++left_out;
      continue;
    }
    table.push_back(ComparisonRow(
        fmt::format("{} {}", row.place.op, row.place.node.empty() ? row.place.value : row.place.node), row.comparison));
  }
  if (table.size() > 1) Print("\n" + Table(table));
  if (left_out) Print(fmt::format("{} more nodes differ; --all shows every node\n", left_out));
  Print(Parting(layers, first, differs));
}

int RunCompare(const Globals& globals, const CompareOptions& o) {
  if (!o.with.empty() && o.with != "onnxruntime") {
    return ReportUsage(globals, fmt::format("--with {}: unknown runtime", o.with), "use --with onnxruntime");
  }
  Task task = {globals, o};
  Runtime runtime;
  Session session;
  if (Status s = OpenModel(globals, o.first, &runtime, &session, o.skip); !s.ok()) return Report(globals, s);
  std::vector<Tensor> results;
  InputFacts facts;
  int usage = 0;
  auto run = [&](const std::vector<Tensor>& now) { return session.Run(Pointers(now), results); };
  if (Status s = MakeInputsAndRun(globals, session, o.inputs, run, results, &task.inputs, &usage, &facts); !s.ok()) {
    return Report(globals, s);
  }
  if (usage) return usage;
  for (size_t i = 0; i < session.input_count(); ++i) task.input_names.emplace_back(session.input(i).name());
  task.threads = session.threads();
  session = Session();

  Side a, b;
  if (int code = RunBoth(task, {}, &a, &b)) return code;
  std::vector<Place> places;
  if (Status s = Nodes(globals, o.first, &places); !s.ok()) return Report(globals, s);
  const std::vector<Row> outputs = CompareSides(a, b, true, places, o.tolerance);
  if (outputs.empty()) {
    return Report(globals, Fail(errors::kMismatch, "there is nothing to compare",
                                {.what = fmt::format("A has {} values, B has {}", a.values.size(), b.values.size())}));
  }
  bool differs = a.values.size() != b.values.size();
  for (const Row& row : outputs) differs |= !row.comparison.ok();

  std::vector<Row> layers;
  const Row* first = nullptr;
  if (o.layers) {
    std::vector<Place> shared = places;
    if (!o.second.empty()) {
      std::vector<Place> others;
      if (Status s = Nodes(globals, o.second, &others); !s.ok()) return Report(globals, s);
      const std::vector<std::string> names = Names(others);
      std::erase_if(shared, [&](const Place& p) { return std::find(names.begin(), names.end(), p.value) == names.end(); });
    }
    Side inner_a, inner_b;
    if (!shared.empty()) {
      if (int code = RunBoth(task, Names(shared), &inner_a, &inner_b)) return code;
    }
    layers = CompareSides(inner_a, inner_b, false, shared, o.tolerance);
    auto parted = std::find_if(layers.begin(), layers.end(), [](const Row& row) { return !row.comparison.ok(); });
    if (parted != layers.end()) first = &*parted;
  }

  if (globals.json) {
    Json output_rows = Json::array(), layer_rows = Json::array();
    for (const Row& row : outputs) output_rows.push_back(RowJson(row));
    for (const Row& row : layers) layer_rows.push_back(RowJson(row));
    PrintJson({{"schema", "mge.compare/1"},
               {"a", a.title},
               {"b", b.title},
               {"equal", !differs && !first},
               {"inputs", std::move(facts.rows)},
               {"outputs", std::move(output_rows)},
               {"layers", std::move(layer_rows)},
               {"parts_at", first ? RowJson(*first) : Json()}});
  } else {
    PrintText(o, a, b, outputs, layers, first, differs);
    if (a.values.size() != b.values.size()) {
      Print(fmt::format("A has {} outputs, B has {}\n", a.values.size(), b.values.size()));
    }
    if (differs && !o.layers) PrintMessage(globals, "--layers shows the first node that differs");
  }
  return differs || first ? kExitMismatch : kExitOk;
}

}  // namespace

Action DeclareCompare(Arguments app, const Globals& globals) {
  auto o = std::make_shared<CompareOptions>();
  app.Add("A", o->first, "An ONNX file; it runs on the device of --device").Required().ValueName("FILE").IsInput();
  app.Add("B", o->second, "Another model with the same inputs; default: A").ValueName("FILE").IsInput();
  o->inputs.Declare(app);
  const Argument against =
      app.Add("--against", o->against,
              "The device for B; default: the device of --device if B is given, else host (the reference evaluators)")
          .ValueName("DEVICE");
  const Argument with = app.Add("--with", o->with, "Runs B in another runtime").ValueName("{onnxruntime}").Excludes(against);
  app.Add("--python", o->python, "The Python interpreter with the package of --with; default: python3")
      .ValueName("FILE")
      .Needs(with);
  const Argument layers = app.AddFlag("--layers", o->layers, "Compares every node and shows the first that differs");
  app.AddFlag("--all", o->all, "With --layers: lists every node, not only those that differ").Needs(layers);
  app.Add("--skip", o->skip, "A pass, rewrite or fusion to skip").Repeats();
  app.Add("--rtol", o->tolerance.relative, "Relative tolerance").Between(0, 1e9);
  app.Add("--atol", o->tolerance.absolute, "Absolute tolerance").Between(0, 1e9);
  return [&globals, o] { return RunCompare(globals, *o); };
}

}  // namespace mge::cli
