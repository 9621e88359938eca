// SPDX-License-Identifier: Apache-2.0
#include "core/conform/conform.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/errors.h"
#include "core/base/input_file.h"
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

constexpr double kCheckSeconds = 20, kOperatorSeconds = 300;
constexpr double kLives = 100;       // starts and stops that a time limit allows for
constexpr size_t kMaxFindings = 40;  // largest number of findings per check in the report
constexpr const char* kOpening = "abi.table";

// Ends the process without closing the device and stopping the backend.
[[noreturn]] void Leave(CheckReporter& w) {
  w.End();
  _exit(0);
}

// Creates a task that gets the backend, which is not loaded.
Task MakeTask(const char* check, std::function<void(BackendUnderTest&)> body, const std::string& path,
              const Options& options, double seconds) {
  return {check,
          [body = std::move(body), path, &options](CheckReporter& w) {
            BackendUnderTest tested(path, options.given, w);
            body(tested);
          },
          seconds};
}

// Runs a check. If it finds a fault, ends the process without closing the device: objects that a failed check has left could
// make closing fail too.
void RunCheck(const Check& check, BackendUnderTest& tested) {
  const bool right = Apply(tested.reporter(), check, "", [&] {
    tested.Prepare(check.needs);
    check.run(tested);
  });
  if (!right) Leave(tested.reporter());
}

// Runs the checks of the family `kernel` for an operator or for claims, which report their findings.
void RunMany(BackendUnderTest& tested, const std::function<void()>& run) {
  Apply(tested.reporter(), kOffers, "", [&] {
    tested.Prepare(Needs::kDevice);
    run();
  });
  tested.reporter().Begin("life.leaks");  // the check of a failure to close and stop
}

// A stage that checks depend on. All stages are tried once before the checks, so that a failing stage is one finding, and
// not one per check.
struct Stage {
  Needs needs;
  const char* check;    // the check that gets the finding
  const char* failure;  // the reason given for the checks that are then not tried
};
constexpr Stage kStages[] = {{Needs::kTable, kOpening, "the table cannot be read"},
                             {Needs::kStarted, "life.start", "the backend does not start and stop"},
                             {Needs::kDevice, "device.open_close", "the device cannot be opened and closed"}};

// Returns whether a check cannot run because it needs the failed stage, or because it already has the finding of that stage.
bool IsLost(const Check& check, const Stage& failed) {
  return check.needs >= failed.needs || check.name == std::string_view(failed.check);
}

// Records the facts about the file for the head of the report.
void TellFile(BackendUnderTest& tested) {
  const NoteReading reading = NoteOf(tested.path());
  const PluginNote& note = reading.note;
  CheckReporter& w = tested.reporter();
  w.Fact("name", note.name);
  w.Fact("version", note.version);
  w.Fact("interface", fmt::format("{}.{}", note.abi_major, note.abi_minor));
  w.Fact("build_id", reading.build_id);
  w.Fact("classes", fmt::format("{}", fmt::join(note.classes, ",")));
}

void TellDevices(BackendUnderTest& tested) {
  for (const DeviceDescription& d : ListDevices(tested.plugin()).devices)
    tested.reporter().Fact("device",
                           fmt::format("{}: {}{}", d.index, d.name, d.score ? "" : " (cannot be used: " + d.reason + ")"));
}

// Checks the user's settings. Reports invalid input and ends the process; passes on warnings.
void CheckGivenSettings(BackendUnderTest& tested) {
  CheckReporter& w = tested.reporter();
  const Logger logger(
      LogLevel::kWarning,
      [](void* to, LogLevel, auto text) { static_cast<CheckReporter*>(to)->Write(RecordKind::kWarning, {}, {}, text); }, &w);
  const absl::Status status = ResolveSettings(tested.plugin(), tested.given(), logger).status();
  if (status.ok() || ErrorId(status) == errors::kPluginRefused.id) return;  // a finding of life.start
  const ErrorParts parts = PartsOf(status);
  std::string title = ErrorTitle(status);
  for (const std::string& part : {parts.what, parts.where}) {
    if (!part.empty()) title += fmt::format(" ({})", part);
  }
  w.Write(RecordKind::kMisuse, std::to_string(ErrorId(status)), title, parts.fix);
  Leave(w);
}

// Tries all stages.
void Rehearse(BackendUnderTest& tested) {
  CheckReporter& w = tested.reporter();
  (void)StatusOf([&] { TellFile(tested); });  // an invalid note is a finding of abi.note
  for (const Stage& stage : kStages) {
    w.Begin(stage.check);
    const absl::Status status = StatusOf([&] { tested.Prepare(stage.needs); });
    if (IsNotOffered(status)) break;
    if (!status.ok()) {
      w.Found(stage.check, "", Std(status.message()));
      Leave(w);
    }
    if (stage.needs == Needs::kTable) CheckGivenSettings(tested);
    if (stage.needs == Needs::kStarted) (void)StatusOf([&] { TellDevices(tested); });
  }
  w.At("closing and stopping");
  w.Begin("device.open_close");
  tested.Close();
  w.Begin("life.start");
  tested.Stop();
}

bool StartsWithOne(const std::vector<std::string>& begins, std::string_view name) {
  return std::ranges::any_of(begins, [&](const std::string& begin) { return name.starts_with(begin); });
}

bool IsOneOf(std::span<const Check> family, std::string_view name) {
  return std::ranges::any_of(family, [&](const Check& check) { return check.name == name; });
}

// The checks and operators that --only selects: the checks that it names, of the operators that it names.
class Selection {
 public:
  explicit Selection(const Options& options) {
    for (const std::string& word : options.only) {
      const bool is_check =
          std::ranges::any_of(AllChecks(), [&](auto* check) { return std::string_view(check->name).starts_with(word); });
      (is_check ? checks_ : ops_).push_back(word);
    }
  }
  const std::vector<std::string>& ops() const { return ops_; }
  // With operators, only the checks that run operator by operator are selected.
  bool Has(std::string_view check) const {
    if (!ops_.empty() && !IsOneOf(KernelChecks(), check)) return false;
    return checks_.empty() || StartsWithOne(checks_, check);
  }
  bool HasOneOf(std::span<const Check> family) const {
    return std::ranges::any_of(family, [&](const Check& check) { return Has(check.name); });
  }
  bool HasOp(std::string_view op) const { return ops_.empty() || StartsWithOne(ops_, op); }

 private:
  std::vector<std::string> checks_, ops_;  // words
};

std::vector<const OpDef*> OpsOf(const Options& options) { return options.quick ? QuickOps() : CheckableOps(); }

// Creates the tasks of the requested checks. Leaves out those that need the failed stage (nullptr: none has failed).
// `life_seconds` is the duration of a start and a stop.
std::vector<Task> MakeTasks(const std::string& path, const Options& options, const Selection& selection, const Stage* failed,
                            double life_seconds) {
  std::vector<Task> tasks;
  auto add = [&](const char* check, double seconds, std::function<void(BackendUnderTest&)> run) {
    const double limit = (options.seconds > 0 ? options.seconds : seconds) + kLives * life_seconds;
    tasks.push_back(MakeTask(check, std::move(run), path, options, limit));
  };
  for (const Check* check : AllChecks()) {
    if (!selection.Has(check->name)) continue;
    if (check->run && !(failed && IsLost(*check, *failed)))
      add(check->name, kCheckSeconds, [check](BackendUnderTest& s) { RunCheck(*check, s); });
  }
  if (failed) return tasks;
  for (const OpDef* def : OpsOf(options)) {
    if (!selection.HasOneOf(KernelChecks()) || !selection.HasOp(def->name)) continue;
    const KernelScope scope = {options.quick, options.full, [&selection](auto check) { return selection.Has(check); }};
    add(kOffers.name, kOperatorSeconds,
        [def, scope](BackendUnderTest& s) { RunMany(s, [&] { CheckOperator(s, *def, scope); }); });
  }
  if (selection.HasOneOf(ClaimChecks()))
    add(kOffers.name, kOperatorSeconds,
        [&options](BackendUnderTest& s) { RunMany(s, [&] { CheckClaims(s, options.quick); }); });
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
  auto check = [&](std::string_view option, const std::vector<std::string>& words, std::string_view kinds, std::string fix) {
    for (const std::string& word : words) {
      if (std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(word); })) continue;
      return Fail(errors::kUsage,
                  fmt::format("{} \"{}\": no {} has a name that begins so.{}", option, EscapeControl(word), kinds,
                              DidYouMean(Nearest(word, names))),
                  {.fix = std::move(fix)});
    }
    return absl::OkStatus();
  };
  MGE_RETURN_IF_ERROR(check("--may-fail", options.may_fail, "check", "name a check of the report, such as kernel.leaks"));
  for (const OpDef* def : OpsOf(options)) names.emplace_back(def->name);
  names.insert(names.end(), families.begin(), families.end());
  MGE_RETURN_IF_ERROR(check("--only", options.only,
                            options.quick ? "check and no operator of --quick" : "check and no operator",
                            fmt::format("name an operator, or a check: {}", fmt::join(families, ", "))));
  if (const Selection selection(options); selection.ops().empty() || selection.HasOneOf(KernelChecks()))
    return absl::OkStatus();
  return Fail(errors::kUsage, "--only: no check that it names runs operator by operator",
              {.fix = "name a check of the family kernel or layout beside an operator, or run twice"});
}

// Collects the records of all tasks in a report.
class Collector {
 public:
  Collector(const Options& options, const Selection& selection, Report& report, std::vector<Expected> expected)
      : options_(options),
        selection_(selection),
        report_(report),
        expected_(std::move(expected)),
        matched_(expected_.size()) {
    for (const Check* check : AllChecks()) {
      const bool may_fail = StartsWithOne(options.may_fail, check->name);
      report_.checks.push_back({check->name, check->proves, Outcome::kUnsupported, "", {}, 0, may_fail});
    }
  }

  void Add(const CheckRecord& r) {
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
      case RecordKind::kWarning:
        if (options_.warn) options_.warn(r.what);
        break;
      case RecordKind::kMisuse: misuse_ = Fail(*errors::Find(std::stoi(r.check)), r.where, {.fix = r.what}); break;
      default: break;
    }
  }

  const absl::Status& misuse() const { return misuse_; }  // an error of the user

  // Returns the first stage with a finding, or nullptr. The checks that depend on it will not be tried.
  const Stage* FindFailedStage() {
    for (const Stage& stage : kStages) {
      if (!failed_ && Of(stage.check)->found) failed_ = &stage;
    }
    return failed_;
  }

  // Sets the outcomes. `whole`: all checks were requested, so each expected failure must have occurred.
  void Finish(bool whole) {
    for (size_t i = 0; i < report_.checks.size(); ++i) {
      CheckResult& c = report_.checks[i];
      const bool expected = std::ranges::none_of(c.findings, [](const Finding& f) { return f.expected.empty(); });
      if (c.found)
        c.outcome = expected ? Outcome::kExpectedFailure : Outcome::kFailed;
      else if (applied_.contains(c.name))
        c.outcome = Outcome::kPassed;
      else if (failed_ && IsLost(*AllChecks()[i], *failed_))
        c.reason = fmt::format("not tried: {}, see {}", failed_->failure, failed_->check);
      else if (c.reason.empty())
        c.reason = "no test case applies to it";
      if (c.outcome != Outcome::kUnsupported) c.reason.clear();
    }
    std::erase_if(report_.checks, [&](const CheckResult& c) { return c.found == 0 && !selection_.Has(c.name); });
    if (report_.Fact("no_device").empty()) {
      std::string why = WhyNoKernel();
      if (failed_ && !why.empty()) why = fmt::format("{}, see {}", failed_->failure, failed_->check);
      if (!why.empty()) Note({"no_kernel", why});
    }
    std::ranges::sort(report_.support, {}, [](const Support& s) { return std::tie(s.op, s.dtype); });
    for (size_t i = 0; i < expected_.size(); ++i) {
      const bool passed = whole || (applied_.contains(expected_[i].check) && expected_[i].where.empty());
      if (!matched_[i] && passed) report_.unexpected_passes.push_back(expected_[i].line);
    }
  }

 private:
  // Returns the reason if kernels were requested but none was tested, else "".
  std::string WhyNoKernel() const {
    auto reaches = [&](std::string_view word) {
      return std::ranges::any_of(report_.support, [&](auto& s) { return s.supported && s.op.starts_with(word); });
    };
    for (const std::string& word : selection_.ops()) {
      if (!reaches(word)) return fmt::format("it has none for {}", word);
    }
    const bool asked = selection_.HasOneOf(KernelChecks()) || selection_.HasOneOf(ClaimChecks());
    if (!asked || reaches("") || applied_.contains("graph.groups")) return {};
    return fmt::format("it has none for any operator{}; check the operator names in its rows (kOp)",
                       options_.quick ? " of --quick" : "");
  }
  CheckResult* Of(const std::string& name) {
    auto at = std::ranges::find(report_.checks, name, &CheckResult::name);
    return at == report_.checks.end() ? nullptr : &*at;
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
    if (c->findings.size() < kMaxFindings || finding.expected.empty()) c->findings.push_back(std::move(finding));
    if (c->findings.size() > 2 * kMaxFindings) c->findings.pop_back();
  }

  const Options& options_;
  const Selection& selection_;
  Report& report_;
  std::vector<Expected> expected_;
  std::vector<bool> matched_;
  std::set<std::string> applied_;
  const Stage* failed_ = nullptr;  // the failed stage, or nullptr
  absl::Status misuse_;
};

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  constexpr std::string_view kNames[] = {"passed", "failed", "unsupported", "expected failure"};
  return kNames[static_cast<size_t>(outcome)];
}

size_t Report::Count(Outcome outcome) const {
  return static_cast<size_t>(std::ranges::count(checks, outcome, &CheckResult::outcome));
}

std::string Report::Fact(std::string_view name) const {
  auto at = std::ranges::find(facts, name, &decltype(facts)::value_type::first);
  return at == facts.end() ? std::string() : at->second;
}

std::string_view Report::Result() const {
  if (Count(Outcome::kFailed) || !unexpected_passes.empty()) return "failed";
  return Fact("no_device").empty() && Fact("no_kernel").empty() ? "passed" : "incomplete";
}

absl::StatusOr<std::vector<Expected>> ReadExpected(const std::string& path) {
  std::vector<Expected> out;
  constexpr int64_t kMaxBytes = 1 << 20;
  MGE_ASSIGN_OR_RETURN(const InputBytes file, ReadInput(path, kMaxBytes, "shorten the list"));
  int number = 0;
  for (absl::string_view line : absl::StrSplit(Absl(AsText(file.bytes)), '\n')) {
    ++number;
    const std::string text(absl::StripAsciiWhitespace(line.substr(0, line.find('#'))));
    if (text.empty()) continue;
    std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('|', 2));
    for (std::string& part : parts) absl::StripAsciiWhitespace(&part);
    auto bad = [&](std::string what) {
      return Fail(errors::kUsage, fmt::format("{}:{}: {}", path, number, what),
                  {.fix = "write: CHECK | PART OF WHERE | reason"});
    };
    if (parts.size() < 3) return bad("a row has three parts");
    Expected e = {parts[0], parts[1], parts[2], text};
    if (std::ranges::none_of(AllChecks(), [&](const Check* c) { return e.check == c->name; }))
      return bad(fmt::format("there is no check '{}'", e.check));
    if (e.reason.empty()) return bad("it gives no reason");
    out.push_back(std::move(e));
  }
  return out;
}

absl::StatusOr<Report> CheckBackend(const std::string& path, const Options& options) {
  MGE_RETURN_IF_ERROR(OpenRegularFile(path).status());
  MGE_RETURN_IF_ERROR(CheckFilter(options));
  std::vector<Expected> expected;
  if (!options.expected_failures.empty()) {
    MGE_ASSIGN_OR_RETURN(expected, ReadExpected(options.expected_failures));
  }
  Report report;
  report.path = std::filesystem::absolute(path).string();
  report.quick = options.quick;
  const Selection selection(options);
  Collector collector(options, selection, report, std::move(expected));
  const auto begin = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const double limit = options.seconds > 0 ? options.seconds : kCheckSeconds;
  MGE_RETURN_IF_ERROR(RunTasks({MakeTask(kOpening, Rehearse, report.path, options, limit)}, 1,
                               [&](const CheckRecord& r) { collector.Add(r); }));
  MGE_RETURN_IF_ERROR(collector.misuse());
  const Stage* failed = collector.FindFailedStage();
  const std::vector<Task> tasks = MakeTasks(report.path, options, selection, failed, failed ? 0 : seconds());
  int jobs = options.jobs > 0 ? options.jobs : static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  size_t done = 0;
  MGE_RETURN_IF_ERROR(RunTasks(tasks, jobs, [&](const CheckRecord& r) {
    collector.Add(r);
    if (r.kind == RecordKind::kDone && options.progress) options.progress(++done, tasks.size());
  }));
  report.seconds = seconds();
  collector.Finish(!options.quick && options.only.empty() && !failed);
  return report;
}

}  // namespace mge::conform
