// SPDX-License-Identifier: Apache-2.0
// The sub-commands plan and memory, which show the plan of a model.
#include <algorithm>

#include "core/cli/inputs.h"
#include "core/cli/models_memory.h"
#include "core/cli/page_file.h"
#include "core/html/memory_page.h"
#include "core/html/plan_page.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

struct ReportOptions {
  std::string model;
  std::vector<std::string> models;
  InputOptions inputs;
  bool why = false;
  bool measure = false;
  std::vector<std::string> skip;
  size_t top = 10;
  std::string page;  // --html
};

constexpr int kMeasuredRuns = 5;  // a step's time is the median of these runs

// Measures runs into the profile. The caller must have done a first run.
Status Measure(Session& session, const std::vector<const Tensor*>& inputs, Profile* profile) {
  std::vector<Tensor> outputs;
  auto control = RunControl::Create();
  if (!control.ok()) return control.status();
  for (int i = 0; i < 1 + kMeasuredRuns; ++i) {
    if (i == 1) control->SetProfile(profile);
    if (Status s = session.Run(inputs, outputs, {.control = &*control}); !s.ok()) return s;
  }
  return Status();
}

std::string MeasuredText(const Json& r) {
  const Json& steps = r["steps"];
  const auto off = std::count_if(steps.begin(), steps.end(), [](const Json& s) { return s["estimate_off"].get<bool>(); });
  std::string out =
      fmt::format("the run took {}; steps with an estimate took {}, estimated {}{}\n", DurationText(r["wall_us"]),
                  DurationText(r["estimated_steps_us"]), DurationText(r["estimated_us"]),
                  r["estimate_off"] ? "  <-- wrong by more than 3 times" : "");
  return out + fmt::format(
                   "{} of {} steps have an estimate that is wrong by more than 4 times (only steps above 1 % of the "
                   "run and 20 us are counted)\n",
                   off, steps.size());
}

int RunPlan(const Globals& globals, const ReportOptions& o) {
  if (int code = CheckPagePath(globals, o.page)) return code;
  Runtime runtime;
  Session session;
  if (Status s = OpenModel(globals, o.model, &runtime, &session, o.skip); !s.ok()) return Report(globals, s);
  std::vector<Tensor> inputs, outputs;
  std::vector<InputOptions> sizes;
  int usage = EachRun(globals, o.inputs, &sizes);
  if (usage) return usage;
  std::string text;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {  // the sizes before the last one, whose plan is shown
    if (Status s = MakeInputs(globals, session, sizes[i], &inputs, &usage); !s.ok()) return Report(globals, s);
    if (usage) return usage;
    if (Status s = session.Plan(Pointers(inputs), "text", false).MoveTo(text); !s.ok()) return Report(globals, s);
  }
  Status s = o.measure ? MakeInputsAndRun(globals, session, sizes.back(), &outputs, &inputs, &usage)
                       : MakeInputs(globals, session, sizes.back(), &inputs, &usage);
  if (!s.ok()) return Report(globals, s);
  if (usage) return usage;
  const std::vector<const Tensor*> in = Pointers(inputs);
  auto profile = Profile::Create();
  if (!profile.ok()) return Report(globals, profile.status());
  if (o.measure) {
    if (s = Measure(session, in, &*profile); !s.ok()) return Report(globals, s);
  }
  if (!o.page.empty()) {
    if (s = session.Plan(in, "mge.plan/1", true, o.measure ? &*profile : nullptr).MoveTo(text); !s.ok())
      return Report(globals, s);
    if (int code = WritePage(globals, o.page, html::Page("Plan of " + o.model, html::PlanBody(Json::parse(text))))) {
      return code;
    }
  }
  s = session.Plan(in, globals.json ? "mge.plan/1" : "text", o.why, o.measure ? &*profile : nullptr).MoveTo(text);
  if (!s.ok()) return Report(globals, s);
  Print(globals.json ? text + "\n" : text);
  if (!o.measure || globals.json) return kExitOk;
  if (s = profile->Report("mge.profile/1").MoveTo(text); !s.ok()) return Report(globals, s);
  Print(MeasuredText(Json::parse(text)));
  return kExitOk;
}

// Returns bars that show the bytes in use in the arena at each step.
std::string Timeline(const Json& report) {
  int64_t end = 0;
  for (const Json& b : report["buffers"]) end = std::max(end, b["last_step"].get<int64_t>() + 1);
  if (end == 0) return "";
  constexpr int64_t kRows = 24;
  int64_t rows = std::min(end, kRows);
  std::vector<int64_t> alive(static_cast<size_t>(end), 0);
  for (const Json& b : report["buffers"]) {
    for (int64_t s = b["first_step"].get<int64_t>(); s <= b["last_step"].get<int64_t>(); ++s)
      alive[static_cast<size_t>(s)] += b["bytes"].get<int64_t>();
  }
  int64_t most = *std::max_element(alive.begin(), alive.end());
  std::string out = "used bytes of the arena, by step:\n";
  for (int64_t r = 0; r < rows; ++r) {
    int64_t from = r * end / rows, to = std::max(from + 1, (r + 1) * end / rows);
    int64_t peak = *std::max_element(alive.begin() + from, alive.begin() + to);
    out += fmt::format("  {:>5}..{:<5} {:>10}  {}\n", from, to - 1, HumanBytes(static_cast<uint64_t>(peak)),
                       std::string(static_cast<size_t>(most ? peak * 50 / most : 0), '#'));
  }
  return out;
}

std::string RenderMemory(const Json& r, size_t top) {
  auto bytes = [&](const char* key) { return HumanBytes(r[key].get<uint64_t>()); };
  std::string out = fmt::format("device {}\n", Text(r["device"]));
  out += Table({{"", "BYTES"},
                {"planned peak", bytes("planned_peak_bytes")},
                {"measured peak", bytes("measured_peak_bytes")},
                {"  arena", bytes("arena_bytes")},
                {"    lower bound of the arena", bytes("arena_lower_bound_bytes")},
                {"    activations without sharing", bytes("activation_bytes_without_sharing")},
                {"    workspaces without sharing", bytes("workspace_bytes_without_sharing")},
                {"  packed constants", bytes("packed_constant_bytes")},
                {"plain constants", bytes("constant_bytes")},
                {"charged to the device", bytes("device_charged_bytes")},
                {"resident memory of the process", bytes("resident_bytes")},
                {"  anonymous: weights, arenas, heap", bytes("resident_anonymous_bytes")},
                {"  mapped: program and libraries", bytes("resident_mapped_bytes")}});
  for (const Json& body : r["bodies"]) {
    out += fmt::format("included: body {}, {} steps, arena {}\n", Escape(Text(body["body"])), Text(body["steps"]),
                       HumanBytes(body["arena_bytes"].get<uint64_t>()));
  }
  std::vector<Json> buffers(r["buffers"].begin(), r["buffers"].end());
  for (const Json& body : r["bodies"]) {
    for (Json b : body["buffers"]) {
      b["name"] = fmt::format("{}: {}", Text(body["body"]), Text(b["name"]));
      buffers.push_back(std::move(b));
    }
  }
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Json& a, const Json& b) { return a["bytes"].get<int64_t>() > b["bytes"].get<int64_t>(); });
  if (buffers.size() > top) buffers.resize(top);
  std::vector<std::vector<std::string>> rows = {{"LARGEST BUFFERS", "BYTES", "KIND", "STEPS", "OFFSET"}};
  for (const Json& b : buffers) {
    rows.push_back({Text(b["name"]), HumanBytes(b["bytes"].get<uint64_t>()), Text(b["category"]),
                    fmt::format("{}..{}", b["first_step"].get<int64_t>(), b["last_step"].get<int64_t>()),
                    Text(b["offset"])});
  }
  return out + "\n" + Table(rows) + "\n" + Timeline(r);
}

int RunMemory(const Globals& globals, const ReportOptions& o) {
  if (o.models.size() > 1 && !o.page.empty()) return ReportUsage(globals, "--html shows one model", "give one model");
  if (int code = CheckPagePath(globals, o.page)) return code;
  if (o.models.size() > 1) return ShowModelsMemory(globals, o.models, o.inputs);
  Runtime runtime;
  Session session;
  if (Status s = OpenModel(globals, o.models.front(), &runtime, &session); !s.ok()) return Report(globals, s);
  std::vector<Tensor> inputs, outputs;
  int usage = 0;
  if (Status s = MakeInputsAndRun(globals, session, o.inputs, &outputs, &inputs, &usage); !s.ok()) return Report(globals, s);
  if (usage) return usage;
  std::string text;
  if (Status s = session.Report("mge.memory/1").MoveTo(text); !s.ok()) return Report(globals, s);
  if (!o.page.empty()) {
    const std::string title = "Memory of " + o.models.front();
    if (int code = WritePage(globals, o.page, html::Page(title, html::MemoryBody(Json::parse(text))))) return code;
  }
  Print(globals.json ? text + "\n" : RenderMemory(Json::parse(text), o.top));
  return kExitOk;
}

}  // namespace

Action DeclarePlan(Arguments app, const Globals& globals) {
  auto o = std::make_shared<ReportOptions>();
  app.Add("MODEL", o->model, "An ONNX file; - is standard input").Required().ValueName("FILE").IsInput();
  o->inputs.Declare(app);
  app.AddFlag("--why", o->why, "Adds reasons, alternatives and the place of every buffer");
  app.AddFlag("--measure", o->measure, "Runs the model and adds the time of each step, the median of 5, to the estimates");
  app.Add("--skip", o->skip, "A pass, rewrite or fusion to skip").Repeats();
  AddPageOption(app, o->page);
  return [&globals, o] { return RunPlan(globals, *o); };
}

Action DeclareMemory(Arguments app, const Globals& globals) {
  auto o = std::make_shared<ReportOptions>();
  app.Add("MODEL", o->models, "ONNX files; several run in turn in one runtime, and may share memory")
      .Required()
      .ValueName("FILE")
      .IsInput();
  o->inputs.Declare(app);
  app.Add("--top", o->top, "Number of buffers to show of a single model, the largest first");
  AddPageOption(app, o->page);
  return [&globals, o] { return RunMemory(globals, *o); };
}

}  // namespace mge::cli
