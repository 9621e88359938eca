// SPDX-License-Identifier: Apache-2.0
// mge check: runs folders of ONNX backend tests (model.onnx beside test_data_set_N) and reports each as passed, failed or
// unsupported. A gap file lists the tests that are known to fail.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/cli/common.h"
#include "core/cli/compare.h"
#include "core/cli/data_set.h"
#include "core/cli/gaps.h"
#include "core/cli/inputs.h"
#include "fmt/format.h"

namespace mge::cli {

namespace fs = std::filesystem;

namespace {

struct CheckOptions {
  std::vector<std::string> folders;
  std::string gaps;  // a gap file, "none", or empty for the gaps of ONNX's own tests
  Tolerance tolerance;
  bool verbose = false;
};

struct Case {
  std::string name;
  std::string status;  // passed, failed, unsupported
  std::string reason;
  int error = 0;            // the id of its error
  int steps_elsewhere = 0;  // steps of nodes that another device than the session's first one computes
};

// Returns the folders with a model.onnx at or below `name`, as sorted absolute paths.
std::vector<fs::path> FindCases(const std::string& name) {
  std::vector<fs::path> out;
  std::error_code ec;
  fs::path root = fs::absolute(name, ec).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();  // "folder/"
  if (fs::exists(root / "model.onnx", ec)) return {root};
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator it(root, options, ec), end; it != end && !ec; it.increment(ec)) {
    if (it->path().filename() == "model.onnx") out.push_back(it->path().parent_path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string Reason(const Status& s) {
  std::string reason(s.title());
  if (!s.what().empty()) reason += fmt::format("; {}", s.what());
  if (!s.where().empty()) reason += fmt::format(" ({})", s.where());
  return reason;
}

// Sets the number of steps that compute nodes on another device than the session's first one.
Status CountStepsElsewhere(const Session& session, const std::vector<Tensor>& inputs, int* count) {
  std::string text;
  if (Status s = session.Plan(Pointers(inputs), "mge.plan/1", /*why=*/false).MoveTo(text); !s.ok()) return s;
  *count = 0;
  const Json plan = Json::parse(text);
  for (const Json& unit : plan["units"]) {
    if (unit["kind"] == "view") continue;  // computes nothing
    *count += !unit["nodes"].empty() && unit["device"] != session.device(0);
  }
  return {};
}

Case RunCase(const Globals& globals, Runtime& runtime, const fs::path& folder, const CheckOptions& o) {
  Case c = {folder.filename().string(), "failed", "", 0};
  auto fail = [&](const Status& s) {
    c.status = s.exit_code() == ExitCode(ErrorKind::kUnsupported) ? "unsupported" : "failed";
    c.reason = Reason(s);
    c.error = s.id();
    return c;
  };
  Session session;
  if (Status s = OpenModel(globals, (folder / "model.onnx").string(), &runtime, &session); !s.ok()) return fail(s);
  int sets = 0;
  for (;; ++sets) {
    fs::path data = folder / fmt::format("test_data_set_{}", sets);
    std::error_code ec;
    if (!fs::is_directory(data, ec)) break;
    std::vector<Tensor> inputs, outputs, expected;
    if (Status s = ReadDataSet(session, data.string(), &inputs, &expected); !s.ok()) return fail(s);
    if (inputs.size() != session.input_count() || expected.size() != session.output_count()) {
      c.reason = fmt::format("{} has {} inputs and {} outputs, the model has {} and {}", data.filename().string(),
                             inputs.size(), expected.size(), session.input_count(), session.output_count());
      return c;
    }
    if (Status s = session.Run(Pointers(inputs), outputs); !s.ok()) return fail(s);
    if (Status s = CountStepsElsewhere(session, inputs, &c.steps_elsewhere); !s.ok()) return fail(s);
    for (size_t i = 0; i < expected.size(); ++i) {
      std::string difference = Sentence(Compare(outputs[i], expected[i], o.tolerance));
      if (difference.empty()) continue;
      c.reason = fmt::format("output '{}' of {}: {}", session.output(i).name(), data.filename().string(), difference);
      c.error = errors::kMismatch.id;
      return c;
    }
  }
  if (sets == 0) {
    c.reason = "there is no test_data_set_0 beside the model: nothing to compare with";
    return c;
  }
  c.status = "passed";
  return c;
}

// Changes the status of a test with a known gap: unsupported if it failed with the listed error, else failed.
void ApplyGap(const Gap& gap, Case* c) {
  if (c->status == "passed") {
    c->status = "failed";
    c->reason = fmt::format("it passes, but it is listed as a gap ({}): remove it from the gap file", gap.reason);
  } else if (c->error == gap.error) {
    c->status = "unsupported";
    c->reason = fmt::format("{}; {}", gap.reason, c->reason);
  } else {
    c->status = "failed";
    c->reason += fmt::format("; the gap file lists it with another error, E{:04d} ({})", gap.error, gap.reason);
  }
}

// Reads the gaps. Returns false after a reported usage error, whose exit code is in `code`.
bool ReadGaps(const Globals& globals, const std::string& path, std::vector<Gap>* out, int* code) {
  if (path == "none") return true;
  std::string text(OnnxGaps()), error;
  if (!path.empty()) {
    std::ifstream in(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
    if (!in.is_open() || in.bad()) {
      *code = ReportUsage(globals, fmt::format("the gap file '{}' cannot be read", path), "give a file, or none");
      return false;
    }
  }
  if (ParseGaps(text, out, &error)) return true;
  *code = ReportUsage(globals, fmt::format("gap file '{}': {}", path, error), "write one test per line: PATH ERROR REASON");
  return false;
}

int RunCheck(const Globals& globals, const CheckOptions& o) {
  std::vector<Gap> gaps;
  int code = kExitOk;
  if (!ReadGaps(globals, o.gaps, &gaps, &code)) return code;
  Runtime runtime;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  std::vector<fs::path> folders;
  for (const std::string& root : o.folders) {
    std::vector<fs::path> found = FindCases(root);
    if (found.empty()) return ReportUsage(globals, fmt::format("'{}' holds no folder with a model.onnx", root));
    folders.insert(folders.end(), found.begin(), found.end());
  }
  std::vector<Case> cases;
  {
    Progress progress(globals, "checking", folders.size());
    for (size_t i = 0; i < folders.size(); ++i) {
      progress.Step(i);
      cases.push_back(RunCase(globals, runtime, folders[i], o));
      if (const Gap* gap = FindGap(gaps, folders[i].string())) ApplyGap(*gap, &cases.back());
    }
  }
  auto count = [&](std::string_view status) {
    return std::count_if(cases.begin(), cases.end(), [&](const Case& c) { return c.status == status; });
  };
  const int64_t passed = count("passed"), failed = count("failed"), unsupported = count("unsupported");
  const int64_t on_device = std::count_if(cases.begin(), cases.end(),
                                          [](const Case& c) { return c.status == "passed" && c.steps_elsewhere == 0; });
  if (globals.json) {
    Json rows = Json::array();
    for (const Case& c : cases) {
      rows.push_back({{"name", c.name},
                      {"status", c.status},
                      {"reason", c.reason},
                      {"error", c.error ? fmt::format("E{:04d}", c.error) : ""},
                      {"steps_elsewhere", c.steps_elsewhere}});
    }
    PrintJson({{"schema", "mge.check/1"},
               {"passed", passed},
               {"failed", failed},
               {"unsupported", unsupported},
               {"on_device", on_device},
               {"cases", std::move(rows)}});
  } else {
    for (const Case& c : cases) {
      if (c.status == "passed" && !o.verbose) continue;
      Print(fmt::format("{:<11} {}{}{}\n", c.status, Escape(c.name), c.reason.empty() ? "" : ": ", Escape(c.reason)));
    }
    Print(fmt::format("{} passed, {} failed, {} unsupported; {} of the passed ones with every step on the first device\n",
                      passed, failed, unsupported, on_device));
  }
  return failed ? kExitMismatch : kExitOk;
}

}  // namespace

Action DeclareCheck(Arguments app, const Globals& globals) {
  auto o = std::make_shared<CheckOptions>();
  app.Add("DIR", o->folders, "Folders of tests, at any depth").Required().ValueName("FOLDER");
  app.Add("--gaps", o->gaps,
          "A file of tests that are known to fail, with lines PATH ERROR REASON, or none; default: ONNX's own tests")
      .ValueName("FILE");
  app.Add("--rtol", o->tolerance.relative, "Relative tolerance").Between(0, 1e9);
  app.Add("--atol", o->tolerance.absolute, "Absolute tolerance").Between(0, 1e9);
  app.AddFlag("-v,--verbose", o->verbose, "Also lists the passed tests");
  return [&globals, o] { return RunCheck(globals, *o); };
}

}  // namespace mge::cli
