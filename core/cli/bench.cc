// SPDX-License-Identifier: Apache-2.0
// mge bench: measures the latency of warm runs, the time to load and to the first result, and the peak memory.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "core/cli/bench_diff.h"
#include "core/cli/generate.h"
#include "core/cli/inputs.h"
#include "core/cli/page_file.h"
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
  bool generate = false;
  int64_t prompt_tokens = 64, max_tokens = 64;
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
    if (Status s = Tensor::CreateOn(runtime, device, input.dtype(), input.dims()).MoveTo(there); !s.ok()) return s;
    if (Status s = input.CopyTo(there); !s.ok()) return s;
    (*in)[i] = &there;
  }
  return Status();
}

Status CopyToHost(const std::vector<Tensor>& tensors, std::vector<Tensor>* copies) {
  copies->clear();
  copies->resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].kind() != MGE_VALUE_TENSOR || tensors[i].raw_data()) continue;  // the host can read it
    if (Status s = tensors[i].ToHost().MoveTo((*copies)[i]); !s.ok()) return s;
  }
  return Status();
}

// Does a few additional runs with a profile. To be called after all measurements, because a profile costs time and memory.
Status ProfileRuns(Session& session, const std::vector<const Tensor*>& in, std::vector<Tensor>* outputs, double us,
                   Profile* profile) {
  const int runs = us < 1e6 ? 3 : 1;
  auto control = RunControl::Create();
  if (!control.ok()) return control.status();
  control->SetProfile(profile);
  for (int i = 0; i < runs; ++i) {
    if (Status s = session.Run(in, *outputs, {.control = &*control}); !s.ok()) return s;
  }
  return Status();
}

int WriteTrace(const Globals& globals, const Profile& profile, const std::string& path) {
  std::string text;
  if (Status s = profile.Report("trace").MoveTo(text); !s.ok()) return Report(globals, s);
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

// A benchmark of one model: load, first run, warm runs, measured runs, and a few runs with a profile. Each step returns the exit
// code of the command, kExitOk if the benchmark goes on.
class Benchmark {
 public:
  Benchmark(const Globals& globals, const BenchOptions& options)
      : globals_(globals), o_(options), on_device_(options.io == "device") {}

  int Run() {
    for (auto step : {&Benchmark::Load, &Benchmark::RunFirst, &Benchmark::Measure, &Benchmark::ProfileSteps}) {
      if (int code = (this->*step)(); code != kExitOk) return code;
    }
    WarnOfWrongEstimate();
    globals_.json ? PrintAsJson() : PrintAsText();
    return kExitOk;
  }

 private:
  int Load() {
    const Status s = OpenModel(globals_, o_.model, &runtime_, &session_, {}, {}, on_device_);
    load_ms_ = Ms(Clock::now() - begin_);
    return s.ok() ? kExitOk : Report(globals_, s);
  }

  // Makes the inputs and does the first run, and the other runs that are not measured.
  int RunFirst() {
    std::vector<Tensor> copies;
    auto run = [&](const std::vector<Tensor>& now) {
      in_ = Pointers(now);
      Status s = on_device_ ? CopyToDevice(runtime_, session_, now, &device_inputs_, &in_) : Status();
      if (s.ok()) s = session_.Run(in_, outputs_);
      if (s.ok() && first_ms_ == 0) first_ms_ = Ms(Clock::now() - begin_);
      return s.ok() && on_device_ ? CopyToHost(outputs_, &copies) : std::move(s);
    };
    const std::vector<Tensor>& host_outputs = on_device_ ? copies : outputs_;
    std::vector<InputOptions> sizes;
    if (int usage = EachRun(globals_, o_.inputs, &sizes)) return usage;
    int usage = 0;
    if (Status s = MakeInputsAndRun(globals_, session_, sizes[0], run, host_outputs, &inputs_, &usage, &input_facts_);
        !s.ok()) {
      return Report(globals_, s);
    }
    if (usage) return usage;
    if (int code = MakeOtherSizes(sizes); code != kExitOk) return code;
    for (int64_t i = 1; i < o_.warm; ++i) {  // the first one was above
      if (Status s = RunNext(); !s.ok()) return Report(globals_, s);
    }
    return kExitOk;
  }

  // Makes the inputs of the other sizes, if a shape has a list of them.
  int MakeOtherSizes(const std::vector<InputOptions>& sizes) {
    if (sizes.size() > 1 && on_device_)
      return ReportUsage(globals_, "--io device: a shape has a list of sizes", "use --io host");
    other_sizes_.resize(sizes.size() - 1);
    for (size_t i = 1; i < sizes.size(); ++i) {
      int usage = 0;
      if (Status s = MakeInputs(globals_, session_, sizes[i], &other_sizes_[i - 1], &usage); !s.ok()) {
        return Report(globals_, s);
      }
      if (usage) return usage;
    }
    return kExitOk;
  }

  // Runs the model with the next size, if there are several. Outputs of the same size are written to the same memory.
  Status RunNext() {
    if (!other_sizes_.empty()) {
      in_ = Pointers(next_ == 0 ? inputs_ : other_sizes_[next_ - 1]);
      next_ = (next_ + 1) % (other_sizes_.size() + 1);
      outputs_.clear();
    }
    return session_.Run(in_, outputs_);
  }

  int Measure() {
    mge_memory_facts before = {};
    if (Status s = session_.Memory().MoveTo(before); !s.ok()) return Report(globals_, s);
    const auto start = Clock::now();
    Progress progress = o_.runs > 0 ? Progress(globals_, "running", static_cast<size_t>(o_.runs))
                                    : Progress(globals_, "running", std::chrono::duration<double>(o_.seconds));
    while (o_.runs > 0 ? static_cast<int64_t>(us_.size()) < o_.runs
                       : us_.size() < 5 || (Ms(Clock::now() - start) < o_.seconds * 1000 && us_.size() < 1000000)) {
      const auto t = Clock::now();
      if (Status s = RunNext(); !s.ok()) return Report(globals_, s);
      us_.push_back(Ms(Clock::now() - t) * 1000);
      progress.Step(us_.size());
    }
    std::sort(us_.begin(), us_.end());
    if (Status s = session_.Memory().MoveTo(memory_); !s.ok()) return Report(globals_, s);
    staged_per_run_ = (memory_.staged_bytes - before.staged_bytes) / us_.size();
    return kExitOk;
  }

  // Compares the planner's estimate with measured steps, and writes the trace. Called last, because a profile costs memory.
  int ProfileSteps() {
    std::string plan, text;
    outputs_.clear();
    if (Status s = session_.Plan(in_, "mge.plan/1", false).MoveTo(plan); !s.ok()) return Report(globals_, s);
    device_ = Json::parse(plan)["device"];
    peak_rss_ = PeakRss();
    auto profile = Profile::Create();
    if (!profile.ok()) return Report(globals_, profile.status());
    if (Status s = ProfileRuns(session_, in_, &outputs_, Percentile(us_, 50), &*profile); !s.ok())
      return Report(globals_, s);
    if (!o_.trace.empty()) {
      if (int code = WriteTrace(globals_, *profile, o_.trace); code != kExitOk) return code;
    }
    if (Status s = profile->Report("mge.profile/1").MoveTo(text); !s.ok()) return Report(globals_, s);
    const Json profiled = Json::parse(text);
    estimated_us_ = profiled["estimated_us"];
    steps_us_ = StepsUs(profiled, Percentile(us_, 50));
    estimate_is_off_ =
        profiled["estimate_off"] && (estimated_us_ > kOffFactor * steps_us_ || steps_us_ > kOffFactor * estimated_us_);
    return kExitOk;
  }

  // Returns whether a device of the session is emulated: no estimate holds for it.
  bool IsEmulated() const {
    Json report;
    if (!ReadReport(runtime_, "mge.devices/1", &report).ok()) return false;
    for (size_t i = 0; i < session_.device_count(); ++i) {
      for (const Json& device : report["devices"]) {
        if (device["name"] == session_.device(i) && device["properties"].value("capability", "") == "software") return true;
      }
    }
    return false;
  }

  void WarnOfWrongEstimate() const {
    if (!estimate_is_off_ || IsEmulated()) return;
    PrintMessage(
        globals_,
        fmt::format("mge: warning: the planner estimated {} for steps that took {}, wrong by more than {:.0f} times; "
                    "`mge plan {} --why --measure` shows the steps",
                    DurationText(estimated_us_), DurationText(steps_us_), kOffFactor, Escape(o_.model)));
  }

  void PrintAsJson() {
    PrintJson(
        {{"schema", "mge.bench/1"},
         {"model", o_.model},
         {"device", device_},
         {"threads", session_.threads()},
         {"neighbours", o_.neighbours},
         {"io", o_.io},
         {"staged_bytes_per_run", staged_per_run_},
         {"inputs", std::move(input_facts_.rows)},
         {"latency_us",
          {{"min", us_.front()}, {"p50", Percentile(us_, 50)}, {"p90", Percentile(us_, 90)}, {"p99", Percentile(us_, 99)}}},
         {"runs", us_.size()},
         {"load_ms", load_ms_},
         {"first_result_ms", first_ms_},
         {"peak_rss_bytes", peak_rss_},
         {"planned_peak_bytes", memory_.planned_peak_bytes},
         {"measured_peak_bytes", memory_.measured_peak_bytes},
         {"estimate", {{"estimated_us", estimated_us_}, {"measured_us", steps_us_}, {"off", estimate_is_off_}}},
         {"steps", memory_.steps},
         {"reference_steps", memory_.reference_steps}});
  }

  void PrintAsText() const {
    const int threads = session_.threads();
    const std::string beside =
        o_.neighbours ? fmt::format(", beside {} busy process{}", o_.neighbours, o_.neighbours == 1 ? "" : "es") : "";
    Print(fmt::format("device          {}, {} thread{}{}\n", device_, threads, threads == 1 ? "" : "s", beside));
    Print(fmt::format("inputs, outputs in memory of the {}, {} staged per run\n", o_.io, HumanBytes(staged_per_run_)));
    Print(fmt::format("latency         min {}, p50 {}, p90 {}, p99 {} ({} runs)\n", DurationText(us_.front()),
                      DurationText(Percentile(us_, 50)), DurationText(Percentile(us_, 90)),
                      DurationText(Percentile(us_, 99)), us_.size()));
    Print(fmt::format("load            {}, first result after {}\n", DurationText(load_ms_ * 1000),
                      DurationText(first_ms_ * 1000)));
    Print(fmt::format("memory          planned {}, measured {}; process peak {}\n", HumanBytes(memory_.planned_peak_bytes),
                      HumanBytes(memory_.measured_peak_bytes), HumanBytes(peak_rss_)));
    const std::string slow =
        memory_.reference_steps ? fmt::format(", {} of them by the slow REFERENCE evaluator", memory_.reference_steps) : "";
    Print(fmt::format("steps           {}{}\n", memory_.steps, slow));
  }

  const Globals& globals_;
  const BenchOptions& o_;
  const bool on_device_;  // inputs and outputs are in the memory of the session's first device
  const Clock::time_point begin_ = Clock::now();
  Runtime runtime_;
  Session session_;
  std::vector<Tensor> inputs_, device_inputs_, outputs_;
  std::vector<const Tensor*> in_;
  std::vector<std::vector<Tensor>> other_sizes_;  // inputs of the second and later sizes
  size_t next_ = 0;                               // the size of the next run
  InputFacts input_facts_;
  std::string device_;
  double load_ms_ = 0, first_ms_ = 0, estimated_us_ = 0, steps_us_ = 0;
  std::vector<double> us_;  // times of the measured runs, sorted
  mge_memory_facts memory_ = {};
  uint64_t staged_per_run_ = 0, peak_rss_ = 0;  // bytes
  bool estimate_is_off_ = false;
};

int RunBench(const Globals& globals, const BenchOptions& o) {
  if (o.model.empty()) return ReportUsage(globals, "MODEL is required", "mge bench --help");
  if (o.generate) {
    const bool inputs = !o.inputs.files.empty() || !o.inputs.shapes.empty() || o.inputs.seed != 0;
    if (inputs) return ReportUsage(globals, "--generate makes the inputs itself", "leave out --input, --shape and --seed");
    return BenchGeneration(globals, o.model, o.prompt_tokens, o.max_tokens);
  }
  std::vector<std::unique_ptr<Child>> neighbours;  // started first, since a process is cheap to copy now
  if (absl::Status s = StartNeighbours(o.neighbours, &neighbours); !s.ok()) return Report(globals, s);
  return Benchmark(globals, o).Run();
}

// Returns whether options of a benchmark are given, which a comparison does not have.
bool HasBenchOptions(const BenchOptions& o) {
  const BenchOptions none;
  return !o.model.empty() || o.generate || o.seconds != none.seconds || o.runs != none.runs || o.warm != none.warm ||
         o.io != none.io || !o.trace.empty() || o.neighbours != none.neighbours || !o.inputs.files.empty() ||
         !o.inputs.shapes.empty() || o.inputs.seed != none.inputs.seed;
}

Arguments DeclareBenchDiff(Arguments app, BenchDiffOptions& o) {
  Arguments compare =
      app.AddCommand("diff", "Compares measurements: files with the output of mge bench --json, or of mge profile --json");
  compare
      .Add("BEFORE", o.before, "A file with one report, or several one after the other; of equal ones, the fastest counts")
      .Required()
      .ValueName("FILE")
      .IsInput();
  compare.Add("AFTER", o.after, "A file like BEFORE").Required().ValueName("FILE").IsInput();
  compare.Add("--top", o.top, "Number of rows of each kind to show; 0: all").Between(0, 1e9);
  AddPageOption(compare, o.page);
  return compare;
}

}  // namespace

Action DeclareBench(Arguments app, const Globals& globals) {
  auto o = std::make_shared<BenchOptions>();
  app.Add("MODEL", o->model, "An ONNX file; - is standard input; with --generate the folder of a language model")
      .ValueName("FILE")
      .IsInput();
  const Argument generate =
      app.AddFlag("--generate", o->generate, "Measures a prompt and the tokens that follow it, as mge generate does");
  app.Add("--prompt-tokens", o->prompt_tokens, "Tokens of the prompt").Between(1, 1e9).Needs(generate);
  app.Add("--max-tokens", o->max_tokens, "Tokens that follow it").Between(1, 1e9).Needs(generate);
  o->inputs.Declare(app);
  app.Add("--seconds", o->seconds, "Measuring time in seconds").Between(1e-9, 1e9).Excludes(generate);
  app.Add("--runs", o->runs, "Number of runs to measure, instead of --seconds").Between(0, 1e9).Excludes(generate);
  app.Add("--warm", o->warm, "Number of runs before measuring, at least 1").Between(0, 1e9).Excludes(generate);
  app.Add("--io", o->io, "Memory of inputs and outputs: of the host, or of the session's first device")
      .OneOf({"host", "device"})
      .Excludes(generate);
  app.Add("--neighbours", o->neighbours, "Number of processes that compute without end beside the model")
      .Between(0, 1024)
      .ValueName("N")
      .Excludes(generate);
  app.Add("--trace", o->trace, "Writes a trace of a few additional runs for the viewers of Chrome and Perfetto")
      .ValueName("FILE")
      .Excludes(generate);
  app.TakesCommands(0);
  auto diff = std::make_shared<BenchDiffOptions>();
  const Arguments compare = DeclareBenchDiff(app, *diff);
  return [&globals, o, diff, compare] {
    if (!compare.Given()) return RunBench(globals, *o);
    if (HasBenchOptions(*o))
      return ReportUsage(globals, "mge bench diff measures nothing", "give only two files with reports");
    return RunBenchDiff(globals, *diff);
  };
}

}  // namespace mge::cli
