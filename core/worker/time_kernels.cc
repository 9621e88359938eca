// SPDX-License-Identifier: Apache-2.0
#include "core/worker/time_kernels.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "core/base/errors.h"
#include "core/engine/runtime.h"
#include "core/plan/kernels/problem_key.h"
#include "core/plan/kernels/timing_request.h"
#include "fmt/format.h"

namespace mge::worker {
namespace {

// Writes the lines of the report. Each is written at once, since the next candidate may end the process.
class Report : public MeasureObserver {
 public:
  explicit Report(int fd) : fd_(fd) {}
  void Begin(const std::string& candidate) override { Write({.kind = TimingLine::Kind::kBegin, .id = candidate}); }
  void End() override { Write({.kind = TimingLine::Kind::kEnd}); }
  void Result(const std::string& candidate, const Measurement& m) override {
    Write({.kind = TimingLine::Kind::kResult, .id = candidate, .result = m});
  }
  void Write(const TimingLine& line) const {
    const std::string text = TimingLineText(line);
    if (write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(1);  // nobody reads it
  }

 private:
  const int fd_;
};

// Returns a runtime with exactly the settings of the request. The variables of the environment that are settings are among
// them already, so only those that locate caches and state are read.
absl::StatusOr<std::shared_ptr<Runtime>> RuntimeOf(const TimingRequest& request) {
  RuntimeOptions options;
  for (const auto& [key, value] : request.settings) options.sources.command_line.push_back({key, value});
  options.sources.environment = CaptureEnvironment();
  std::erase_if(options.sources.environment.variables,
                [](const auto& variable) { return variable.first != "HOME" && !variable.first.starts_with("XDG_"); });
  options.plugin_directories = request.plugin_directories;
  options.built_in_plugins = false;
  options.logger = Logger(LogLevel::kSilent);
  return Runtime::Create(std::move(options));
}

absl::Status Measure(const TimingRequest& request, Report& report) {
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Runtime> runtime, RuntimeOf(request));
  MGE_ASSIGN_OR_RETURN(Resolution resolution, runtime->devices().Resolve(request.device, "the request"));
  Group group;
  group.device = resolution.devices.front().device;
  group.nodes.resize(static_cast<size_t>(request.graph.node_count()));
  std::iota(group.nodes.begin(), group.nodes.end(), NodeId{0});
  group.abi = std::make_unique<AbiGraph>(request.graph, group.nodes, request.uses);
  group.inputs = group.abi->inputs();
  group.outputs = group.abi->outputs();
  const mge_problem problem = ProblemOf(group, request.threads);
  if (KeyOf(*group.device, problem, request.require, request.forbid).timing != request.key) {
    return Fail(errors::kUsage, "its problem, its backend or its driver is not that of the program that asked");
  }
  const mge_constraints constraints = {sizeof(mge_constraints), 0, request.require, request.forbid, request.workspace_limit};
  MGE_ASSIGN_OR_RETURN(group.candidates, EnumerateCandidates(*group.device, problem, constraints));
  auto in = [](const std::vector<std::string>& list, const OwnedCandidate& c) {
    return std::find(list.begin(), list.end(), c.id) != list.end();
  };
  std::vector<OwnedCandidate>& offered = group.candidates.offered;
  std::erase_if(offered, [&](const OwnedCandidate& c) { return !in(request.offered, c); });
  std::vector<int> which;
  for (const std::string& id : request.measured) {
    auto at = std::find_if(offered.begin(), offered.end(), [&](const OwnedCandidate& c) { return c.id == id; });
    if (at == offered.end()) return Fail(errors::kUsage, fmt::format("its backend does not offer kernel '{}'", id));
    which.push_back(static_cast<int>(at - offered.begin()));
  }
  report.Write({.kind = TimingLine::Kind::kReady});
  const MeasureLimits limits = {.seconds = request.seconds, .bytes = request.bytes, .observer = &report};
  return MeasureCandidates(request.graph, group, which, request.threads, limits).status();
}

}  // namespace

int TimeKernels(std::string_view bytes, int fd) {
  Report report(fd);
  absl::StatusOr<TimingRequest> request = ReadTimingRequest(bytes);
  const absl::Status done = request.ok() ? Measure(*request, report) : request.status();
  if (done.ok()) return 0;
  const ErrorParts parts = PartsOf(done);
  report.Write({.kind = TimingLine::Kind::kFailed,
                .error = parts.what.empty() ? ErrorTitle(done) : fmt::format("{}: {}", ErrorTitle(done), parts.what)});
  return 1;
}

}  // namespace mge::worker
