// SPDX-License-Identifier: Apache-2.0
#include "core/profile/trace.h"

#include <set>
#include <utility>

#include "core/profile/summary.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace mge {
namespace {

using Json = nlohmann::ordered_json;

double Us(int64_t ns) { return static_cast<double>(ns) * 1e-3; }

Json Complete(std::string name, const char* category, int64_t begin, int64_t end, int64_t process, uint32_t row) {
  return {{"name", std::move(name)}, {"cat", category}, {"ph", "X"}, {"ts", Us(begin)},
          {"dur", Us(end - begin)},  {"pid", process},  {"tid", row}};
}

Json Name(const char* what, std::string name, int64_t process, uint32_t row) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", row}, {"args", {{"name", std::move(name)}}}};
}

Json Arguments(const ProfiledStep& step) {
  Json args = {{"kernel", step.kernel}, {"operators", step.ops}, {"nodes", step.nodes}, {"device", step.device}};
  if (!step.queue.empty()) args["queue"] = step.queue;
  if (step.estimated_us >= 0) args["estimated_us"] = step.estimated_us;
  if (step.flops > 0) args["flops"] = step.flops;
  if (step.bytes > 0) args["bytes"] = step.bytes;
  return args;
}

void AddRun(const Recording& recording, const ProfiledRun& run, bool calls, Json& events) {
  if (calls) events.push_back(Complete("run", "run", run.begin, run.end, run.caller, 0));
  for (const MemorySample& sample : run.memory) {
    events.push_back({{"name", "memory of " + sample.device},
                      {"cat", "memory"},
                      {"ph", "C"},
                      {"ts", Us(sample.time)},
                      {"pid", run.caller},
                      {"args", {{"bytes", sample.bytes}}}});
  }
  for (const ProfiledSpan& span : run.spans) {
    if (!calls && span.kind != ProfiledSpan::Kind::kStep) continue;
    if (span.kind == ProfiledSpan::Kind::kPlanning) {
      events.push_back(Complete("planning", "planning", span.begin, span.end, run.caller, 0));
      continue;
    }
    if (span.kind == ProfiledSpan::Kind::kPlan) {
      const std::string path = PathOf(recording, span.plan);
      events.push_back(Complete(path.empty() ? "model" : path, "plan", span.begin, span.end, run.caller, 0));
      continue;
    }
    const ProfiledStep& step = recording.plans[static_cast<size_t>(span.plan)].steps[static_cast<size_t>(span.step)];
    Json event = Complete(step.label, "step", span.begin, span.end, run.caller, 0);
    event["args"] = Arguments(step);
    events.push_back(std::move(event));
    for (uint32_t i = span.first_share; i < span.first_share + span.share_count; ++i) {
      const ThreadShare& share = run.shares[i];
      if (share.thread == 0) continue;
      Json help = Complete(step.label, "work", share.begin, share.end, run.caller, share.thread);
      help["args"] = {{"busy_us", Us(share.busy)}};
      events.push_back(std::move(help));
    }
  }
}

}  // namespace

std::string TraceText(const Recording& recording, bool calls) {
  Json events = Json::array();
  std::set<std::pair<int64_t, uint32_t>> rows;
  for (const ProfiledRun& run : recording.runs) {
    rows.insert({run.caller, 0});
    for (const ThreadShare& share : run.shares) rows.insert({run.caller, share.thread});
  }
  for (const auto& [process, row] : rows) {
    if (row == 0) events.push_back(Name("process_name", fmt::format("runs of thread {}", process), process, 0));
    events.push_back(Name("thread_name", row == 0 ? "steps" : fmt::format("worker {}", row), process, row));
  }
  for (const ProfiledRun& run : recording.runs) AddRun(recording, run, calls, events);
  const Json trace = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mge
