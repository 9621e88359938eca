// SPDX-License-Identifier: Apache-2.0
// mge profile: shows the time of each step and of each type of operator in a run.
#include <algorithm>
#include <chrono>

#include "core/cli/device_roofs.h"
#include "core/cli/inputs.h"
#include "core/cli/page_file.h"
#include "core/html/profile_page.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct ProfileOptions {
  std::string model;
  InputOptions inputs;
  double seconds = 2;
  int64_t runs = 0;
  int64_t warm = 3;
  std::vector<std::string> skip;
  int64_t top = 0;
  bool in_order = false;
  std::string page;  // --html
};

// Returns at most the last `width` characters, because exporters' names differ at the end.
std::string Tail(const std::string& text, size_t width) {
  return text.size() <= width ? text : "..." + text.substr(text.size() - (width - 3));
}

std::string Percent(double share) { return fmt::format("{:.1f} %", share * 100); }
std::string Rate(const Json& value) {
  return value.is_null() || value == 0 ? "-" : fmt::format("{:.1f}", value.get<double>());
}

std::string StepName(const Json& s) {
  std::string name = s["label"];
  if (s["nodes"].size() > 1) name += fmt::format(" (+{})", s["nodes"].size() - 1);
  const std::string body = s["body"];
  return Tail(body.empty() ? name : body + ": " + name, 48);
}

std::string Estimate(const Json& s) {
  if (s["estimated_us"].is_null()) return "-";
  return DurationText(s["estimated_us"].get<double>() * s["calls"].get<double>()) + (s["estimate_off"] ? " !" : "");
}

std::string StepTable(const Json& report, const ProfileOptions& o) {
  std::vector<const Json*> steps;
  for (const Json& s : report["steps"]) steps.push_back(&s);
  auto time = [](const Json* s) { return (*s)["time_us"].get<double>(); };
  if (!o.in_order) std::stable_sort(steps.begin(), steps.end(), [&](auto* a, auto* b) { return time(a) > time(b); });
  std::vector<std::vector<std::string>> rows = {
      {"STEP", "NAME", "TIME", "SHARE", "OPERATORS", "KERNEL", "CALLS", "ESTIMATE", "GFLOP/s", "GB/s", "BALANCE"}};
  const size_t shown = o.top > 0 ? std::min(steps.size(), static_cast<size_t>(o.top)) : steps.size();
  double rest = 0;
  bool off = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Json& s = *steps[i];
    off |= s["estimate_off"].get<bool>();
    if (i >= shown) {
      rest += time(&s);
      continue;
    }
    std::vector<std::string> ops = s["operators"];
    const std::string what = ops.empty() ? s["kind"].get<std::string>() : fmt::format("{}", fmt::join(ops, "+"));
    rows.push_back({std::to_string(s["unit"].get<int>()), StepName(s), DurationText(time(&s)),
                    Percent(s["share"].get<double>()), Tail(what, 28), Tail(s["kernel"], 36),
                    fmt::format("{:g}", s["calls"].get<double>()), Estimate(s), Rate(s["gflops_per_s"]), Rate(s["gb_per_s"]),
                    s["balance"].is_null() ? "-" : fmt::format("{:.0f} %", s["balance"].get<double>() * 100)});
  }
  const double wall = report["wall_us"];
  auto add = [&](const std::string& name, double us) {
    rows.push_back({"", name, DurationText(us), Percent(us / wall), "", "", "", "", "", "", ""});
  };
  if (shown < steps.size()) add(fmt::format("{} other steps", steps.size() - shown), rest);
  if (double us = report["planning_us"]; us > 0.005 * wall) {
    add("planning in the run", us);
    add("between steps", report["between_steps_us"]);
  } else {
    add("between steps", report["between_steps_us"].get<double>() + us);
  }
  add("sum: the wall time", wall);
  std::string out = Table(rows);
  if (off) out += "!: the planner's estimate is wrong by more than 4 times\n";
  return out;
}

std::string Render(const Json& r, const ProfileOptions& o) {
  std::string out = fmt::format(
      "device {}, {} {}, {} runs, means over the faster {}\n", Escape(r["device"].get<std::string>()),
      r["threads"].get<int>(), r["threads"] == 1 ? "thread" : "threads", r["runs"].get<int>(), r["counted_runs"].get<int>());
  out += StepTable(r, o) + "\n";
  std::vector<std::vector<std::string>> rows = {{"OPERATOR", "STEPS", "CALLS", "TIME", "SHARE", "GFLOP/s", "GB/s"}};
  for (const Json& op : r["operators"]) {
    rows.push_back({op["operator"], std::to_string(op["steps"].get<int>()), fmt::format("{:g}", op["calls"].get<double>()),
                    DurationText(op["time_us"]), Percent(op["share"]), Rate(op["gflops_per_s"]), Rate(op["gb_per_s"])});
  }
  out += Table(rows);
  if (r["estimate_off"]) {
    out += fmt::format("the planner estimated {} for steps that took {}\n", DurationText(r["estimated_us"]),
                       DurationText(r["estimated_steps_us"]));
  }
  return out;
}

int WriteProfilePage(const Globals& globals, const ProfileOptions& o, Runtime& runtime, const Profile& profile,
                     const Json& report) {
  std::string timeline;
  if (Status s = profile.Report("mge.timeline/1").MoveTo(timeline); !s.ok()) return Report(globals, s);
  const std::string body = html::ProfileBody(report, Json::parse(timeline), MeasureRoofs(globals, runtime));
  return WritePage(globals, o.page, html::Page("Profile of " + o.model, body));
}

int RunProfile(const Globals& globals, const ProfileOptions& o) {
  if (int code = CheckPagePath(globals, o.page)) return code;
  Runtime runtime;
  Session session;
  if (Status s = OpenModel(globals, o.model, &runtime, &session, o.skip); !s.ok()) return Report(globals, s);
  std::vector<Tensor> inputs, outputs;
  int usage = 0;
  if (Status s = MakeInputsAndRun(globals, session, o.inputs, &outputs, &inputs, &usage); !s.ok()) return Report(globals, s);
  if (usage) return usage;
  const std::vector<const Tensor*> in = Pointers(inputs);
  auto profile = Profile::Create();
  if (!profile.ok()) return Report(globals, profile.status());
  auto control = RunControl::Create();
  if (!control.ok()) return Report(globals, control.status());
  for (int64_t i = 1; i < o.warm; ++i) {
    if (Status s = session.Run(in, outputs, {.control = &*control}); !s.ok()) return Report(globals, s);
  }
  control->SetProfile(&*profile);
  const auto begin = Clock::now();
  Progress progress = o.runs > 0 ? Progress(globals, "running", static_cast<size_t>(o.runs))
                                 : Progress(globals, "running", std::chrono::duration<double>(o.seconds));
  auto more = [&](int64_t done) {
    if (o.runs > 0) return done < o.runs;
    return done < 3 || (done < 1000 && Clock::now() - begin < std::chrono::duration<double>(o.seconds));
  };
  for (int64_t done = 0; more(done); progress.Step(static_cast<size_t>(++done))) {
    if (Status s = session.Run(in, outputs, {.control = &*control}); !s.ok()) return Report(globals, s);
  }
  std::string text;
  if (Status s = profile->Report("mge.profile/1").MoveTo(text); !s.ok()) return Report(globals, s);
  const Json report = Json::parse(text);
  if (!o.page.empty()) {
    if (int code = WriteProfilePage(globals, o, runtime, *profile, report)) return code;
  }
  Print(globals.json ? text + "\n" : Render(report, o));
  return kExitOk;
}

}  // namespace

Action DeclareProfile(Arguments app, const Globals& globals) {
  auto o = std::make_shared<ProfileOptions>();
  app.Add("MODEL", o->model, "An ONNX file; - is standard input").Required().ValueName("FILE").IsInput();
  o->inputs.Declare(app);
  app.Add("--seconds", o->seconds, "Measuring time in seconds").Between(1e-9, 1e9);
  app.Add("--runs", o->runs, "Number of runs to measure, instead of --seconds").Between(0, 1e9);
  app.Add("--warm", o->warm, "Number of runs before measuring, at least 1").Between(0, 1e9);
  app.Add("--top", o->top, "Number of steps to show; 0: all").Between(0, 1e9);
  app.AddFlag("--in-order", o->in_order, "Shows the steps in the order of execution, instead of the longest first");
  app.Add("--skip", o->skip, "A pass, rewrite or fusion to skip").Repeats();
  AddPageOption(app, o->page,
                "Writes a picture there, one page for a browser that needs no network: timeline, roofline, slowest steps");
  return [&globals, o] { return RunProfile(globals, *o); };
}

}  // namespace mge::cli
