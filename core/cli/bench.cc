// SPDX-License-Identifier: Apache-2.0
// mge bench: measures the latency of warm runs, the time to load and to the first result, and the peak memory.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "core/cli/inputs.h"
#include "core/process/child.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string model;
  InputOptions inputs;
  double seconds = 2;
  int64_t runs = 0;
  int64_t warm = 3;
  std::string io = "host";
  std::string trace;
  int64_t neighbours = 0;
};

double Ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

double Percentile(const std::vector<double>& sorted, double p) {
  size_t i = static_cast<size_t>(p / 100 * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[std::min(i, sorted.size() - 1)];
}

// Returns the peak resident size of the process in bytes. getrusage() is only the fallback: after exec it includes the peak
// of the previous program.
uint64_t PeakRss() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

// Copies inputs to the session's first device. Returns the inputs of a run: the copies, and those that have none (strings).
Status CopyToDevice(const Runtime& runtime, const Session& session, const std::vector<Tensor>& inputs,
                    std::vector<Tensor>* copies, std::vector<const Tensor*>* in) {
  const std::string device(session.device(0));
  *in = Pointers(inputs);
  copies->clear();
  copies->resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    if (input.kind() != MGE_VALUE_TENSOR || input.dtype() == MGE_DTYPE_STRING) continue;
    Tensor& there = (*copies)[i];
    if (Status s = Tensor::CreateOn(runtime.get(), device, input.dtype(), input.dims(), &there); !s.ok()) return s;
    if (Status s = input.CopyTo(&there); !s.ok()) return s;
    (*in)[i] = &there;
  }
  return Status();
}

Status CopyToHost(const std::vector<Tensor>& tensors, std::vector<Tensor>* copies) {
  copies->clear();
  copies->resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].kind() != MGE_VALUE_TENSOR || tensors[i].raw_data()) continue;  // the host can read it
    if (Status s = tensors[i].ToHost(&(*copies)[i]); !s.ok()) return s;
  }
  return Status();
}

// Does a few additional runs with a profile. To be called after all measurements, because a profile costs time and memory.
Status ProfileRuns(Session& session, const std::vector<const Tensor*>& in, std::vector<Tensor>* outputs, double us,
                   Profile* profile) {
  const int runs = us < 1e6 ? 3 : 1;
  RunControl control;
  control.SetProfile(profile);
  for (int i = 0; i < runs; ++i) {
    if (Status s = session.Run(in, outputs, {.control = &control}); !s.ok()) return s;
  }
  return Status();
}

int WriteTrace(const Globals& globals, const Profile& profile, const std::string& path) {
  std::string text;
  if (Status s = profile.Report("trace", &text); !s.ok()) return Report(globals, s);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return kExitOk;
  return Report(globals, Fail(errors::kFileWrite, fmt::format("'{}' cannot be written", path), {.where = path}));
}

// Starts processes that compute without end, as other programs of the machine do. They end with the result.
absl::Status StartNeighbours(int64_t count, std::vector<std::unique_ptr<Child>>* neighbours) {
  for (int64_t i = 0; i < count; ++i) {
    const auto compute = [](int) {
      for (volatile uint64_t n = 0;;) n = n + 1;
    };
    neighbours->push_back(Child::Fork(compute, kNoTimeLimit));
    if (Child& child = *neighbours->back(); child.Ended()) {
      return Fail(errors::kOutOfMemory, child.end().Describe(kNoTimeLimit), {.where = "--neighbours"});
    }
  }
  return absl::OkStatus();
}

constexpr double kOffFactor = 3;  // of an estimate that is worth a warning

// Returns the time of the steps with an estimate in a run of `run_us`. The stamps of a recording slow a GPU down, so that its
// small steps seem to take several times as long.
double StepsUs(const Json& profiled, double run_us) {
  const double steps_us = profiled["estimated_steps_us"], wall_us = profiled["wall_us"];
  return wall_us > run_us ? steps_us * run_us / wall_us : steps_us;
}

int RunBench(const Globals& globals, const BenchOptions& o) {
  std::vector<std::unique_ptr<Child>> neighbours;  // started first, since a process is cheap to copy now
  if (absl::Status s = StartNeighbours(o.neighbours, &neighbours); !s.ok()) return Report(globals, s);
  auto begin = Clock::now();
  Runtime runtime;
  Session session;
  const bool on_device = o.io == "device";
  if (Status s = OpenModel(globals, o.model, &runtime, &session, {}, {}, on_device); !s.ok()) return Report(globals, s);
  double load_ms = Ms(Clock::now() - begin);
  std::vector<Tensor> inputs, device_inputs, outputs, copies;
  std::vector<const Tensor*> in;
  const std::vector<Tensor>& first_outputs = on_device ? copies : outputs;  // in host memory
  int usage = 0;
  InputFacts facts_of_inputs;
  double first_ms = 0;
  auto run = [&](const std::vector<Tensor>& now) {
    in = Pointers(now);
    Status s = on_device ? CopyToDevice(runtime, session, now, &device_inputs, &in) : Status();
    if (s.ok()) s = session.Run(in, &outputs);
    if (s.ok() && first_ms == 0) first_ms = Ms(Clock::now() - begin);
    return s.ok() && on_device ? CopyToHost(outputs, &copies) : std::move(s);
  };
  if (Status s = MakeInputsAndRun(globals, session, o.inputs, run, first_outputs, &inputs, &usage, &facts_of_inputs);
      !s.ok()) {
    return Report(globals, s);
  }
  if (usage) return usage;
  for (int64_t i = 1; i < o.warm; ++i) {  // the first one was above
    if (Status s = session.Run(in, &outputs); !s.ok()) return Report(globals, s);
  }
  mge_memory_facts before = {};
  if (Status s = session.Memory(&before); !s.ok()) return Report(globals, s);
  // Outputs of known size are written to the same memory in every run.
  std::vector<double> us;
  auto start = Clock::now();
  Progress progress(globals, "running", static_cast<size_t>(std::max<int64_t>(o.runs, 1)));
  while (o.runs > 0 ? static_cast<int64_t>(us.size()) < o.runs
                    : us.size() < 5 || (Ms(Clock::now() - start) < o.seconds * 1000 && us.size() < 1000000)) {
    auto t = Clock::now();
    if (Status s = session.Run(in, &outputs); !s.ok()) return Report(globals, s);
    us.push_back(Ms(Clock::now() - t) * 1000);
    progress.Step(us.size());
  }
  std::sort(us.begin(), us.end());
  mge_memory_facts facts = {};
  if (Status s = session.Memory(&facts); !s.ok()) return Report(globals, s);
  const uint64_t staged = (facts.staged_bytes - before.staged_bytes) / us.size();  // bytes per run
  std::string plan;
  if (Status s = session.Plan(in, "mge.plan/1", false, &plan); !s.ok()) return Report(globals, s);
  std::string device = Json::parse(plan)["device"];
  const uint64_t peak_rss = PeakRss();
  Profile profile;
  if (Status s = ProfileRuns(session, in, &outputs, Percentile(us, 50), &profile); !s.ok()) return Report(globals, s);
  if (!o.trace.empty()) {
    if (int code = WriteTrace(globals, profile, o.trace); code != kExitOk) return code;
  }
  std::string profile_text;
  if (Status s = profile.Report("mge.profile/1", &profile_text); !s.ok()) return Report(globals, s);
  const Json profiled = Json::parse(profile_text);
  const double estimated_us = profiled["estimated_us"], steps_us = StepsUs(profiled, Percentile(us, 50));
  const bool is_off =
      profiled["estimate_off"] && (estimated_us > kOffFactor * steps_us || steps_us > kOffFactor * estimated_us);
  if (is_off) {
    Talk(globals,
         fmt::format("mge: warning: the planner estimated {} for steps that took {}, wrong by more than {:.0f} times; "
                     "`mge plan {} --why --measure` shows the steps",
                     DurationText(estimated_us), DurationText(steps_us), kOffFactor, Escape(o.model)));
  }
  const int threads = session.threads();
  if (globals.json) {
    PrintJson(
        {{"schema", "mge.bench/1"},
         {"device", device},
         {"threads", threads},
         {"neighbours", o.neighbours},
         {"io", o.io},
         {"staged_bytes_per_run", staged},
         {"inputs", std::move(facts_of_inputs.rows)},
         {"latency_us",
          {{"min", us.front()}, {"p50", Percentile(us, 50)}, {"p90", Percentile(us, 90)}, {"p99", Percentile(us, 99)}}},
         {"runs", us.size()},
         {"load_ms", load_ms},
         {"first_result_ms", first_ms},
         {"peak_rss_bytes", peak_rss},
         {"planned_peak_bytes", facts.planned_peak_bytes},
         {"measured_peak_bytes", facts.measured_peak_bytes},
         {"estimate", {{"estimated_us", estimated_us}, {"measured_us", steps_us}, {"off", is_off}}},
         {"steps", facts.steps},
         {"reference_steps", facts.reference_steps}});
    return kExitOk;
  }
  Print(fmt::format(
      "device          {}, {} thread{}{}\n", device, threads, threads == 1 ? "" : "s",
      o.neighbours ? fmt::format(", beside {} busy process{}", o.neighbours, o.neighbours == 1 ? "" : "es") : ""));
  Print(fmt::format("inputs, outputs in memory of the {}, {} staged per run\n", o.io, HumanBytes(staged)));
  Print(fmt::format("latency         min {}, p50 {}, p90 {}, p99 {} ({} runs)\n", DurationText(us.front()),
                    DurationText(Percentile(us, 50)), DurationText(Percentile(us, 90)), DurationText(Percentile(us, 99)),
                    us.size()));
  Print(fmt::format("load            {}, first result after {}\n", DurationText(load_ms * 1000),
                    DurationText(first_ms * 1000)));
  Print(fmt::format("memory          planned {}, measured {}; process peak {}\n", HumanBytes(facts.planned_peak_bytes),
                    HumanBytes(facts.measured_peak_bytes), HumanBytes(peak_rss)));
  Print(fmt::format(
      "steps           {}{}\n", facts.steps,
      facts.reference_steps ? fmt::format(", {} of them by the slow REFERENCE evaluator", facts.reference_steps) : ""));
  return kExitOk;
}

}  // namespace

Action DeclareBench(Arguments app, const Globals& globals) {
  auto o = std::make_shared<BenchOptions>();
  app.Add("MODEL", o->model, "An ONNX file; - is standard input").Required().ValueName("FILE").IsInput();
  o->inputs.Declare(app);
  app.Add("--seconds", o->seconds, "Measuring time in seconds").Between(1e-9, 1e9);
  app.Add("--runs", o->runs, "Number of runs to measure, instead of --seconds").Between(0, 1e9);
  app.Add("--warm", o->warm, "Number of runs before measuring, at least 1").Between(0, 1e9);
  app.Add("--io", o->io, "Memory of inputs and outputs: of the host, or of the session's first device")
      .OneOf({"host", "device"});
  app.Add("--neighbours", o->neighbours, "Number of processes that compute without end beside the model")
      .Between(0, 1024)
      .ValueName("N");
  app.Add("--trace", o->trace, "Writes a trace of a few additional runs for the viewers of Chrome and Perfetto")
      .ValueName("FILE");
  return [&globals, o] { return RunBench(globals, *o); };
}

}  // namespace mge::cli
