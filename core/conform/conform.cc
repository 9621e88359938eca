// SPDX-License-Identifier: Apache-2.0
#include "core/conform/conform.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ranges>
#include <set>
#include <thread>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/nearest.h"
#include "core/conform/backend_under_test.h"
#include "core/conform/cases.h"
#include "core/conform/check.h"
#include "core/conform/kernel_checks.h"
#include "core/conform/task.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

constexpr double kCheckSeconds = 20, kOperatorSeconds = 120;
constexpr size_t kMostFindings = 40;  // largest number of findings per check in the report
constexpr const char* kOpening = "abi.table";

void RecordResult(BackendUnderTest& tested, const Check& check, const absl::Status& status, std::string_view where) {
  CheckReporter& w = tested.reporter();
  if (IsNotOffered(status)) return w.NotOffered(check.name, Std(status.message()));
  w.Applied(check.name);
  if (!status.ok()) w.Found(check.name, where, Std(status.message()));
}

// Reports a change of floating-point modes that was not already reported for a kernel.
void RecordModes(CheckReporter& w) {
  if (std::string changed = TakeModeChange(); !changed.empty()) w.Found("kernel.thread_modes", "", changed);
}

Task TaskOf(const Check& check, const std::string& path, const Options& options) {
  double seconds = options.seconds > 0 ? options.seconds : kCheckSeconds;
  return {check.name, check.name,
          [&check, path, &options](CheckReporter& w) {
            w.Begin(check.name);
            BackendUnderTest tested(path, options.given, w);
            absl::Status status = tested.Prepare(check.needs);
            if (status.ok()) status = check.run(tested);
            RecordResult(tested, check, status, "");
            RecordModes(w);
            // Exits without closing the device: objects that a failed check has left could make closing fail too.
            if (!status.ok() && !IsNotOffered(status)) {
              w.End();
              _exit(0);
            }
          },
          seconds};
}

// A stage that checks depend on. All stages are tried once before the checks, so that a failing stage is one finding, and
// not one per check.
struct Stage {
  Needs needs;
  const char* check;    // the check that gets the finding
  const char* failure;  // the reason given for the checks that are then not tried
  void (BackendUnderTest::*undo)() = nullptr;
};
constexpr Stage kStages[] = {
    {Needs::kTable, kOpening, "the table cannot be read"},
    {Needs::kStarted, "life.start", "the backend does not start and stop", &BackendUnderTest::Stop},
    {Needs::kDevice, "device.open_close", "the device cannot be opened and closed", &BackendUnderTest::Close}};

// Returns whether a check cannot run because it needs the failed stage, or because it already has the finding of that stage.
bool IsLost(const Check& check, const Stage& failed) {
  return check.needs >= failed.needs || check.needs == Needs::kProcesses ||
         (check.needs == Needs::kLives && failed.needs > Needs::kTable) || check.name == std::string_view(failed.check);
}

// Records the facts about the file for the head of the report.
void TellFile(BackendUnderTest& tested) {
  absl::StatusOr<NoteReading> reading = NoteOf(tested.path());
  if (!reading.ok()) return;  // a finding of abi.note
  const PluginNote& note = reading->note;
  CheckReporter& w = tested.reporter();
  w.Fact("name", note.name);
  w.Fact("version", note.version);
  w.Fact("interface", fmt::format("{}.{}", note.abi_major, note.abi_minor));
  w.Fact("build_id", reading->build_id);
  w.Fact("classes", fmt::format("{}", fmt::join(note.classes, ",")));
}

void TellDevices(BackendUnderTest& tested) {
  absl::StatusOr<DeviceList> list = ListDevices(tested.plugin());
  if (!list.ok()) return;
  for (const DeviceDescription& d : list->devices) {
    tested.reporter().Fact("device",
                           fmt::format("{}: {}{}", d.index, d.name, d.score ? "" : " (cannot be used: " + d.reason + ")"));
  }
}

Task Rehearsal(const std::string& path, const Options& options) {
  return {"rehearsal", kOpening,
          [path, &options](CheckReporter& w) {
            BackendUnderTest tested(path, options.given, w);
            TellFile(tested);
            for (const Stage& stage : kStages) {
              w.Begin(stage.check);
              absl::Status status = tested.Prepare(stage.needs);
              if (!status.ok() && !IsNotOffered(status)) {
                w.Found(stage.check, "", Std(status.message()));
                w.End();
                _exit(0);
              }
              if (!status.ok()) break;
              if (stage.needs == Needs::kStarted) TellDevices(tested);
            }
            w.At("closing and stopping");
            for (const Stage& stage : kStages | std::views::reverse) {
              if (!stage.undo) continue;
              w.Begin(stage.check);
              (tested.*stage.undo)();
            }
          },
          options.seconds > 0 ? options.seconds : kCheckSeconds};
}

Task OperatorTask(std::string name, std::function<absl::Status(BackendUnderTest&)> run, const std::string& path,
                  const Options& options) {
  double seconds = options.seconds > 0 ? options.seconds : kOperatorSeconds;
  return {std::move(name), kOpening,
          [run = std::move(run), path, &options](CheckReporter& w) {
            BackendUnderTest tested(path, options.given, w);
            w.Begin("kernel.offers");
            absl::Status status = tested.Prepare(Needs::kDevice);
            if (status.ok()) status = run(tested);
            RecordModes(w);
            if (IsNotOffered(status)) return w.NotOffered("kernel.offers", Std(status.message()));
            if (!status.ok()) w.Found("kernel.offers", "", Std(status.message()));
            w.Begin("life.leaks");
          },
          seconds};
}

bool StartsWithOne(const std::vector<std::string>& begins, std::string_view name) {
  return std::any_of(begins.begin(), begins.end(), [&](const std::string& begin) { return name.starts_with(begin); });
}

bool Wanted(const Options& options, std::string_view name) {
  return options.only.empty() || StartsWithOne(options.only, name);
}

// Creates the tasks of the requested checks. Leaves out those that need the failed stage (nullptr: none has failed).
std::vector<Task> MakeTasks(const std::string& path, const Options& options, const Stage* failed) {
  std::vector<Task> tasks;
  bool kernels = false;
  for (const Check* check : AllChecks()) {
    if (!check->run) kernels |= Wanted(options, check->name);
    if (failed && IsLost(*check, *failed)) continue;
    if (check->run && Wanted(options, check->name)) tasks.push_back(TaskOf(*check, path, options));
  }
  if (failed) return tasks;
  for (const OpDef* def : options.quick ? QuickOps() : CheckableOps()) {
    if (!kernels && !Wanted(options, def->name)) continue;
    auto run = [def, quick = options.quick, full = options.full](BackendUnderTest& s) {
      return CheckOperator(s, *def, quick, full);
    };
    tasks.push_back(OperatorTask(std::string(def->name), run, path, options));
  }
  if (kernels)
    tasks.push_back(OperatorTask(
        "claims", [quick = options.quick](BackendUnderTest& s) { return CheckClaims(s, quick); }, path, options));
  return tasks;
}

// Checks that every word of --only is a prefix of a check's or an operator's name, and those of --may-fail of a check's.
absl::Status CheckFilter(const Options& options) {
  std::vector<std::string> names, families;  // "queue.order", "queue"
  for (const Check* check : AllChecks()) {
    names.push_back(check->name);
    std::string family = names.back().substr(0, names.back().find('.'));
    if (families.empty() || families.back() != family) families.push_back(std::move(family));
  }
  for (const std::string& word : options.may_fail) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(word); })) continue;
    return Fail(errors::kUsage,
                fmt::format("--may-fail \"{}\": no check has a name that begins so.{}", EscapeControl(word),
                            DidYouMean(Nearest(word, names))),
                {.fix = "name a check of the report, such as kernel.leaks"});
  }
  for (const OpDef* def : options.quick ? QuickOps() : CheckableOps()) names.emplace_back(def->name);
  std::vector<std::string> known = names;
  known.insert(known.end(), families.begin(), families.end());
  for (const std::string& word : options.only) {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(word); })) continue;
    return Fail(errors::kUsage,
                fmt::format("--only \"{}\": no check and no operator{} has a name that begins so.{}", EscapeControl(word),
                            options.quick ? " of --quick" : "", DidYouMean(Nearest(word, known))),
                {.fix = fmt::format("name an operator, or a check: {}", fmt::join(families, ", "))});
  }
  return absl::OkStatus();
}

// Checks the user's settings in a child process. Fails if one is unknown or its value is invalid; passes on warnings.
absl::Status CheckGivenSettings(const std::string& path, const Options& options) {
  if (options.given.empty()) return absl::OkStatus();
  Task task = {"settings", kOpening,
               [&](CheckReporter& w) {
                 BackendUnderTest tested(path, options.given, w);
                 if (!tested.Load().ok()) return;  // reported later as a finding
                 absl::Status status = CheckGiven(tested.plugin(), options.given, [&w](auto& text) { w.Warning(text); });
                 if (status.ok()) return;
                 ErrorParts parts = PartsOf(status);
                 std::string title = ErrorTitle(status);
                 for (const std::string& part : {parts.what, parts.where}) {
                   if (!part.empty()) title += fmt::format(" ({})", part);
                 }
                 w.Misuse(std::to_string(ErrorId(status)), title, parts.fix);
               },
               options.seconds > 0 ? options.seconds : kCheckSeconds};
  absl::Status misuse;
  MGE_RETURN_IF_ERROR(RunTasks(
      {task}, 1,
      [&](const Task&, const CheckRecord& r) {
        if (r.kind == RecordKind::kWarning && options.warn) options.warn(r.what);
        if (r.kind != RecordKind::kMisuse) return;
        for (const ErrorRow* row : errors::kAll) {
          if (std::to_string(row->id) == r.check) misuse = Fail(*row, r.where, {.fix = r.what});
        }
      },
      [](const Task&, double) {}));
  return misuse;
}

// Collects the records of all tasks in a report.
class Collector {
 public:
  Collector(const Options& options, Report& report, std::vector<Expected> expected)
      : options_(options), report_(report), expected_(std::move(expected)), matched_(expected_.size()) {
    for (const Check* check : AllChecks()) {
      const bool may_fail = StartsWithOne(options.may_fail, check->name);
      report_.checks.push_back({check->name, check->proves, Outcome::kUnsupported, "", {}, 0, may_fail});
    }
  }

  void Add(const Task&, const CheckRecord& r) {
    switch (r.kind) {
      case RecordKind::kApplied: applied_.insert(r.check); break;
      case RecordKind::kFound: Find(r); break;
      case RecordKind::kNotOffered:
        if (CheckResult* c = Of(r.check); c && c->reason.empty()) c->reason = r.what;
        break;
      case RecordKind::kSupported:
      case RecordKind::kRefused:
        report_.support.push_back({r.check, r.where, r.kind == RecordKind::kSupported, r.what});
        break;
      case RecordKind::kRan: report_.cases.emplace_back(r.check, r.where); break;
      case RecordKind::kFact: Note({r.where, r.what}); break;
      default: break;
    }
  }

  // Returns the first stage with a finding, or nullptr.
  const Stage* FailedStage() {
    for (const Stage& stage : kStages) {
      if (Of(stage.check)->found) return &stage;
    }
    return nullptr;
  }
  void Skip(const Stage& failed) {
    failed_ = &failed;
    for (const Check* check : AllChecks()) {
      if (IsLost(*check, failed))
        Of(check->name)->reason = fmt::format("not tried: {}, see {}", failed.failure, failed.check);
    }
  }

  // Sets the outcomes. `whole`: all checks were requested, so each expected failure must have occurred.
  void Finish(bool whole) {
    for (CheckResult& c : report_.checks) {
      bool unexpected =
          std::any_of(c.findings.begin(), c.findings.end(), [](const Finding& f) { return f.expected.empty(); });
      if (c.found)
        c.outcome = unexpected ? Outcome::kFailed : Outcome::kExpectedFailure;
      else if (applied_.contains(c.name))
        c.outcome = Outcome::kPassed;
      else if (c.reason.empty())
        c.reason = "no test case applies to it";
      if (c.outcome != Outcome::kUnsupported) c.reason.clear();
    }
    std::erase_if(report_.checks,
                  [&](const CheckResult& c) { return c.outcome == Outcome::kUnsupported && !Wanted(options_, c.name); });
    if (report_.Fact("no_device").empty()) {
      std::string why = WhyNoKernel();
      if (failed_ && !why.empty()) why = fmt::format("{}, see {}", failed_->failure, failed_->check);
      if (!why.empty()) Note({"no_kernel", why});
    }
    std::sort(report_.support.begin(), report_.support.end(),
              [](const Support& a, const Support& b) { return std::tie(a.op, a.dtype) < std::tie(b.op, b.dtype); });
    for (size_t i = 0; i < expected_.size(); ++i) {
      if (!matched_[i] && (whole || applied_.contains(expected_[i].check)) && expected_[i].where.empty()) {
        report_.unexpected_passes.push_back(expected_[i].line);
      } else if (!matched_[i] && whole) {
        report_.unexpected_passes.push_back(expected_[i].line);
      }
    }
  }

 private:
  // Returns the reason if kernels were requested but none was tested, else "".
  std::string WhyNoKernel() const {
    auto reaches = [&](std::string_view word) {
      return std::any_of(report_.support.begin(), report_.support.end(),
                         [&](const Support& s) { return s.supported && s.op.starts_with(word); });
    };
    const std::vector<const OpDef*> tried = options_.quick ? QuickOps() : CheckableOps();
    for (const std::string& word : options_.only) {
      const bool names =
          std::any_of(tried.begin(), tried.end(), [&](const OpDef* def) { return def->name.starts_with(word); });
      if (names && !reaches(word)) return fmt::format("it has none for {}", word);
    }
    std::span<const Check* const> all = AllChecks();
    const bool asked = std::any_of(all.begin(), all.end(), [&](auto* c) { return !c->run && Wanted(options_, c->name); });
    if (!asked || reaches("") || applied_.contains("graph.groups")) return {};
    if (!options_.quick) return "it has none for any operator; check the operator names in its rows (kOp)";
    return fmt::format("it has none for the operators of --quick, which are {}",
                       fmt::join(tried | std::views::transform([](const OpDef* def) { return def->name; }), ", "));
  }
  CheckResult* Of(const std::string& name) {
    for (CheckResult& c : report_.checks) {
      if (c.name == name) return &c;
    }
    return nullptr;
  }
  // Adds a fact once, because several processes may record the same one.
  void Note(std::pair<std::string, std::string> fact) {
    auto& facts = report_.facts;
    if (std::find(facts.begin(), facts.end(), fact) == facts.end()) facts.push_back(std::move(fact));
  }
  void Find(const CheckRecord& r) {
    CheckResult* c = Of(r.check);
    if (!c) return;
    ++c->found;
    for (Finding& same : c->findings) {
      if (same.where == r.where && same.what == r.what) return void(++same.times);
    }
    Finding finding = {r.where, r.what, c->may_fail ? "--may-fail" : "", 1};
    for (size_t i = 0; i < expected_.size(); ++i) {
      if (expected_[i].check != r.check || r.where.find(expected_[i].where) == std::string::npos) continue;
      matched_[i] = true;
      finding.expected = expected_[i].reason;
    }
    // The limit applies to expected findings first, so that unexpected ones are kept.
    if (c->findings.size() < kMostFindings || finding.expected.empty()) c->findings.push_back(std::move(finding));
    if (c->findings.size() > 2 * kMostFindings) c->findings.pop_back();
  }

  const Options& options_;
  Report& report_;
  std::vector<Expected> expected_;
  std::vector<bool> matched_;
  std::set<std::string> applied_;
  const Stage* failed_ = nullptr;  // the failed stage, or nullptr
};

std::string_view Strip(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed: return "passed";
    case Outcome::kFailed: return "failed";
    case Outcome::kUnsupported: return "unsupported";
    case Outcome::kExpectedFailure: return "expected failure";
  }
  return "?";
}

size_t Report::Count(Outcome outcome) const {
  return static_cast<size_t>(
      std::count_if(checks.begin(), checks.end(), [&](const CheckResult& c) { return c.outcome == outcome; }));
}

std::string Report::Fact(std::string_view name) const {
  for (const auto& [key, value] : facts) {
    if (key == name) return value;
  }
  return {};
}

std::string_view Report::Result() const {
  if (Count(Outcome::kFailed) || !unexpected_passes.empty()) return "failed";
  return Fact("no_device").empty() && Fact("no_kernel").empty() ? "passed" : "incomplete";
}

std::span<const Check* const> AllChecks() {
  static const std::vector<const Check*>* all = [] {
    auto* list = new std::vector<const Check*>;
    for (std::span<const Check> family :
         {AbiChecks(), DeviceChecks(), MemoryChecks(), PoolChecks(), PolicyChecks(), QueueChecks(), FenceChecks(),
          CollectiveChecks(), RowChecks(), KernelChecks(), ClaimChecks(), LifeChecks()}) {
      for (const Check& check : family) list->push_back(&check);
    }
    return list;
  }();
  return *all;
}

absl::StatusOr<std::vector<Expected>> ReadExpected(const std::string& path) {
  std::vector<Expected> out;
  constexpr int64_t kMostBytes = 1 << 20;
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path, kMostBytes, "shorten the list"));
  int number = 0;
  for (auto part : AsText(file->bytes()) | std::views::split('\n')) {
    ++number;
    std::string_view line(part.begin(), part.end());
    std::string_view text = Strip(line.substr(0, line.find('#')));
    if (text.empty()) continue;
    size_t first = text.find('|'), second = first == std::string_view::npos ? first : text.find('|', first + 1);
    auto bad = [&](std::string what) {
      return Fail(errors::kUsage, fmt::format("{}:{}: {}", path, number, what),
                  {.fix = "write: CHECK | PART OF WHERE | reason"});
    };
    if (second == std::string_view::npos) return bad("a row has three parts");
    Expected e = {std::string(Strip(text.substr(0, first))), std::string(Strip(text.substr(first + 1, second - first - 1))),
                  std::string(Strip(text.substr(second + 1))), std::string(text)};
    std::span<const Check* const> all = AllChecks();
    if (std::none_of(all.begin(), all.end(), [&](const Check* c) { return e.check == c->name; }))
      return bad(fmt::format("there is no check '{}'", e.check));
    if (e.reason.empty()) return bad("it gives no reason");
    out.push_back(std::move(e));
  }
  return out;
}

absl::StatusOr<Report> CheckBackend(const std::string& path, const Options& options) {
  MGE_RETURN_IF_ERROR(OpenRegularFile(path).status());
  MGE_RETURN_IF_ERROR(CheckFilter(options));
  std::error_code code;
  std::filesystem::path absolute = std::filesystem::absolute(path, code);
  if (code) return Fail(errors::kFileAccess, fmt::format("'{}' cannot be found", path), {.what = code.message()});
  std::vector<Expected> expected;
  if (!options.expected_failures.empty()) {
    MGE_ASSIGN_OR_RETURN(expected, ReadExpected(options.expected_failures));
  }
  Report report;
  report.path = absolute.string();
  report.quick = options.quick;
  Collector collector(options, report, std::move(expected));
  int jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  MGE_RETURN_IF_ERROR(CheckGivenSettings(report.path, options));
  size_t done = 0;
  auto begin = std::chrono::steady_clock::now();
  auto add = [&](const Task& t, const CheckRecord& r) { collector.Add(t, r); };
  MGE_RETURN_IF_ERROR(RunTasks({Rehearsal(report.path, options)}, 1, add, [](const Task&, double) {}));
  const Stage* failed = collector.FailedStage();
  if (failed) collector.Skip(*failed);
  std::vector<Task> tasks = MakeTasks(report.path, options, failed);
  MGE_RETURN_IF_ERROR(RunTasks(tasks, jobs, add, [&](const Task&, double) {
    if (options.progress) options.progress(++done, tasks.size());
  }));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  collector.Finish(!options.quick && options.only.empty() && !failed);
  return report;
}

}  // namespace mge::conform
