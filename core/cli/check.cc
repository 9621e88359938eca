// SPDX-License-Identifier: Apache-2.0
// mge check: runs folders of ONNX backend tests (model.onnx beside test_data_set_N) and says passed, failed or unsupported.
#include <algorithm>
#include <filesystem>

#include "core/cli/common.h"
#include "core/cli/compare.h"
#include "core/cli/data_set.h"
#include "fmt/format.h"

namespace mge::cli {

namespace fs = std::filesystem;

Status ReadDataSet(const Session& session, const std::string& folder, std::vector<Tensor>* inputs, std::vector<Tensor>* outputs) {
  for (size_t i = 0; i < session.input_count(); ++i) {
    std::string path = fmt::format("{}/input_{}.pb", folder, i);
    std::error_code ec;
    if (!fs::exists(path, ec)) break;
    Tensor t;
    if (Status s = session.ReadInput(i, path, &t); !s.ok()) return s;
    inputs->push_back(std::move(t));
  }
  for (size_t i = 0; i < session.output_count(); ++i) {
    std::string path = fmt::format("{}/output_{}.pb", folder, i);
    std::error_code ec;
    if (!fs::exists(path, ec)) break;
    Tensor t;
    if (Status s = session.ReadOutput(i, path, &t); !s.ok()) return s;
    outputs->push_back(std::move(t));
  }
  return Status();
}

namespace {

constexpr int kBadInputId = 307;  // E0307: an input that does not fit what the model declares

struct Options {
  std::vector<std::string> folders;
  Tolerance tolerance;
  bool verbose = false;
};

// Tests whose expected values do not follow from their model, and why.
struct Contradiction {
  std::string_view name;
  std::string_view reason;
};
constexpr Contradiction kContradictions[] = {
    {"test_adam_multiple", "its expected values were made with epsilon 1e-2, which its model does not say"},
};

struct Case {
  std::string name;
  std::string status;  // passed, failed, unsupported
  std::string reason;
};

// Folders below `root` that hold a model.onnx, sorted.
std::vector<fs::path> FindCases(const fs::path& root) {
  std::vector<fs::path> out;
  std::error_code ec;
  if (fs::exists(root / "model.onnx", ec)) return {root};
  for (fs::recursive_directory_iterator it(root, fs::directory_options::skip_permission_denied, ec), end; it != end; it.increment(ec)) {
    if (ec) break;
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

// Whether the model holds operators whose results are random numbers.
bool IsRandom(const Session& session) {
  std::string text;
  return session.Report("mge.inspect/1", &text).ok() && Json::parse(text)["random"].get<bool>();
}

Case RunCase(const Globals& globals, Runtime& runtime, const fs::path& folder, const Options& o) {
  Case c = {folder.filename().string(), "failed", ""};
  auto fail = [&](const Status& s) {
    c.status = s.kind() == 4 ? "unsupported" : "failed";
    c.reason = Reason(s);
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
    if (inputs.size() != session.input_count()) {
      c.reason = fmt::format("{} holds {} inputs, the model has {}", data.filename().string(), inputs.size(), session.input_count());
      return c;
    }
    if (Status s = session.Run(Pointers(inputs), &outputs); !s.ok()) {
      fail(s);
      if (s.id() == kBadInputId) {
        c.status = "unsupported";
        c.reason = "the test's data contradicts its model; " + c.reason;
      }
      return c;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      std::string difference = Difference(outputs[i], expected[i], o.tolerance);
      if (difference.empty()) continue;
      c.reason = fmt::format("output '{}' of {}: {}", session.output_name(i), data.filename().string(), difference);
      for (const Contradiction& known : kContradictions) {
        if (c.name != known.name) continue;
        c.status = "unsupported";
        c.reason = std::string(known.reason);
      }
      if (IsRandom(session)) {
        c.status = "unsupported";
        c.reason = "expects the random numbers of another generator; " + c.reason;
      }
      return c;
    }
  }
  if (sets == 0) {
    c.status = "unsupported";
    c.reason = "no test data beside the model";
    return c;
  }
  c.status = "passed";
  return c;
}

int Run(const Globals& globals, const Options& o) {
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
    }
  }
  auto count = [&](std::string_view status) {
    return std::count_if(cases.begin(), cases.end(), [&](const Case& c) { return c.status == status; });
  };
  int64_t passed = count("passed"), failed = count("failed"), unsupported = count("unsupported");
  if (globals.json) {
    Json rows = Json::array();
    for (const Case& c : cases) rows.push_back({{"name", c.name}, {"status", c.status}, {"reason", c.reason}});
    PrintJson({{"schema", "mge.check/1"}, {"passed", passed}, {"failed", failed}, {"unsupported", unsupported}, {"cases", std::move(rows)}});
  } else {
    for (const Case& c : cases) {
      if (c.status != "passed" || o.verbose) Print(fmt::format("{:<11} {}{}{}\n", c.status, Escape(c.name), c.reason.empty() ? "" : ": ", Escape(c.reason)));
    }
    Print(fmt::format("{} passed, {} failed, {} unsupported\n", passed, failed, unsupported));
  }
  return failed ? kExitMismatch : kExitOk;
}

}  // namespace

Action DeclareCheck(CLI::App& app, const Globals& globals) {
  auto o = std::make_shared<Options>();
  app.add_option("DIR", o->folders, "Folders of tests, at any depth")->required();
  app.add_option("--rtol", o->tolerance.relative, "Relative tolerance");
  app.add_option("--atol", o->tolerance.absolute, "Absolute tolerance");
  app.add_flag("-v,--verbose", o->verbose, "Lists what passed, too");
  return [&globals, o] { return Run(globals, *o); };
}

}  // namespace mge::cli
