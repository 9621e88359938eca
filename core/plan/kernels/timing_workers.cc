// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/timing_workers.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "core/base/errno_text.h"
#include "core/base/file.h"
#include "core/base/file_trust.h"
#include "core/process/child.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr double kStartSeconds = 60;  // time limit of a worker until its problem is complete

void Remove(std::vector<std::string>& list, const std::string& id) { std::erase(list, id); }

}  // namespace

// The end of one worker.
struct TimingWorkers::Outcome {
  std::vector<std::pair<std::string, Measurement>> results;
  std::string candidate;  // the candidate that ran when the worker ended; empty: none
  std::string why;        // the reason of the end, if not all candidates were measured
  bool late = false;      // the time limit was over
  bool lasting = true;    // the candidate would end another worker too
  bool again = false;     // the candidate ended just as the time limit was over, so no candidate is to blame
  bool stopped = false;   // the run that waits was stopped
};

// Runs a worker. Removes the candidates that were measured from request.measured.
TimingWorkers::Outcome TimingWorkers::Run(TimingRequest& request, const StopControl* stop) {
  Outcome out;
  const auto child = Child::Execute({options_.program, "time"}, TimingRequestBytes(request), kStartSeconds);
  std::string failed, before;  // before: the candidate before the last lines
  child->ReadToEnd([&] {
    before = out.candidate;
    for (const std::string& text : child->TakeLines()) {
      TimingLine line;
      if (!ParseTimingLine(text, &line)) continue;
      switch (line.kind) {
        case TimingLine::Kind::kBegin: out.candidate = line.id; break;
        case TimingLine::Kind::kReady:
        case TimingLine::Kind::kEnd: out.candidate.clear(); break;
        case TimingLine::Kind::kFailed: failed = line.error; break;
        case TimingLine::Kind::kResult:
          out.candidate.clear();
          Remove(request.measured, line.id);
          out.results.emplace_back(line.id, std::move(line.result));
          break;
      }
      child->LimitTo(out.candidate.empty() ? kNoTimeLimit : options_.seconds);
    }
    out.stopped = !CheckStop(stop).ok();
    return !out.stopped;
  });
  if (out.stopped) return out;
  const ChildEnd& end = child->end();
  out.again = end.timed_out && out.candidate != before;
  if (!failed.empty()) out.candidate.clear();  // its device or its problem failed, not the candidate
  out.why = failed.empty() ? end.Describe(out.candidate.empty() ? kStartSeconds : options_.seconds) : failed;
  out.late = end.timed_out;
  out.lasting = end.timed_out || end.signal != SIGKILL;  // the system kills a process for lack of memory
  return out;
}

std::string TimingWorkers::WhyInProcess(const Device& device) const {
  if (!device.Is(MGE_DEVICE_HOST_ACCESSIBLE) && !device.Is(MGE_DEVICE_ONLY_BY_NAME)) {
    return "the device is not in host memory";
  }
  const Fd file(open(options_.program.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.valid()) return fmt::format("'{}', a part of MGE: {}", options_.program, ErrnoText(errno));
  const std::string others = WhyNotTrusted(file.get());
  return others.empty() ? std::string() : fmt::format("'{}' is not executed: {}", options_.program, others);
}

void TimingWorkers::Warn(const Device& device, const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    if (!warned_.insert(why).second) return;
  }
  options_.logger.Warning("kernels of {} are timed in this process, without select.profiling_timeout_seconds: {}",
                          device.name(), why);
}

std::optional<std::vector<Measurement>> TimingWorkers::Measure(const Graph& graph, const Group& group,
                                                               std::span<const int> which, uint32_t threads,
                                                               const mge_constraints& constraints, const std::string& key,
                                                               const MeasureLimits& limits) {
  if (std::string why = WhyInProcess(*group.device); !why.empty()) {
    Warn(*group.device, why);
    return std::nullopt;
  }
  const std::vector<OwnedCandidate>& offered = group.candidates.offered;
  TimingRequest request = {.plugin_directories = options_.plugin_directories,
                           .settings = options_.settings(),
                           .device = group.device->name(),
                           .key = key,
                           .threads = threads,
                           .require = constraints.require,
                           .forbid = constraints.forbid,
                           .workspace_limit = constraints.workspace_limit,
                           .seconds = limits.seconds,
                           .bytes = limits.bytes,
                           .offered = {},
                           .measured = {},
                           .graph = {},
                           .uses = {}};
  SetGraph(graph, group, request);
  for (const OwnedCandidate& c : offered) request.offered.push_back(c.id);
  for (int c : which) request.measured.push_back(offered[static_cast<size_t>(c)].id);
  options_.logger.Debug("{} kernels of {} are timed in '{}'", which.size(), request.device, options_.program);
  std::map<std::string, Measurement> found;
  while (!request.measured.empty()) {
    Outcome run = Run(request, limits.stop);
    for (auto& [id, m] : run.results) found[id] = std::move(m);
    if (run.stopped) break;
    if (request.measured.empty()) break;
    if (run.again) continue;
    const bool known = std::find(request.offered.begin(), request.offered.end(), run.candidate) != request.offered.end();
    if (!known) {
      if (found.empty() && request.offered.size() == offered.size()) {  // no candidate has run
        Warn(*group.device, run.why);
        return std::nullopt;
      }
      for (const std::string& id : request.measured) found[id].fault = fmt::format("not timed: mge-worker: {}", run.why);
      break;
    }
    Remove(request.offered, run.candidate);
    if (std::erase(request.measured, run.candidate) == 0) continue;
    Measurement& m = found[run.candidate];
    m.fault =
        fmt::format("left out: while it was timed, {}{}", run.why, run.late ? " (select.profiling_timeout_seconds)" : "");
    m.limit_s = options_.seconds;
    m.kept = run.lasting;
  }
  std::vector<Measurement> out;
  for (int c : which) {
    auto at = found.find(offered[static_cast<size_t>(c)].id);
    if (at == found.end()) break;  // the run was stopped
    out.push_back(std::move(at->second));
  }
  return out;
}

}  // namespace mge
