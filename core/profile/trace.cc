// SPDX-License-Identifier: Apache-2.0
#include "core/profile/trace.h"

#include <algorithm>
#include <iterator>
#include <map>
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

// The rows of devices with queues: a process for each device, and in it a thread for each queue.
class QueueRows {
 public:
  explicit QueueRows(const Recording& recording) {
    for (const ProfiledPlan& plan : recording.plans) {
      for (const ProfiledStep& step : plan.steps) {
        if (!step.queue.empty()) rows_[step.device].insert(step.queue);
      }
    }
  }
  int64_t ProcessOf(const ProfiledStep& step) const {
    return kFirstProcess + std::distance(rows_.begin(), rows_.find(step.device));
  }
  uint32_t RowOf(const ProfiledStep& step) const {
    const std::set<std::string>& queues = rows_.at(step.device);
    return static_cast<uint32_t>(std::distance(queues.begin(), queues.find(step.queue)));
  }
  void AddNames(Json& events) const {
    int64_t process = kFirstProcess;
    for (const auto& [device, queues] : rows_) {
      events.push_back(Name("process_name", "device " + device, process, 0));
      uint32_t row = 0;
      for (const std::string& queue : queues) events.push_back(Name("thread_name", queue, process, row++));
      ++process;
    }
  }

 private:
  static constexpr int64_t kFirstProcess = int64_t{1} << 30;  // above all thread numbers, which are the other processes
  std::map<std::string, std::set<std::string>> rows_;
};

// Adds a step of a queue to the row of that queue. A copy is in the calling thread's row, too, and an arrow (a flow event)
// leads from there to the queue.
void AddQueueStep(const ProfiledStep& step, const ProfiledSpan& span, const ProfiledRun& run, const QueueRows& rows,
                  Json& events) {
  const int64_t process = rows.ProcessOf(step);
  const uint32_t row = rows.RowOf(step);
  // The host sees the end of a step a little later than the device.
  const auto device_ns = static_cast<int64_t>(span.device_us * 1e3);
  const int64_t begin = span.device_us < 0 ? span.begin : std::max(span.begin, span.end - device_ns);
  Json event = Complete(step.label, "step", begin, span.end, process, row);
  event["args"] = Arguments(step);
  events.push_back(std::move(event));
  if (step.kind != Unit::Kind::kCopy) return;
  events.push_back(Complete(step.label, "copy", span.begin, span.end, run.caller, 0));
  const size_t id = events.size();
  auto flow = [&](const char* phase, int64_t time, int64_t in, uint32_t at) {
    events.push_back(
        {{"name", "copy"}, {"cat", "copy"}, {"ph", phase}, {"id", id}, {"ts", Us(time)}, {"pid", in}, {"tid", at}});
  };
  flow("s", span.begin, run.caller, 0);
  flow("f", begin, process, row);
  events.back()["bp"] = "e";  // the arrow ends at the step that begins there
}

void AddRun(const Recording& recording, const ProfiledRun& run, bool calls, const QueueRows& rows, Json& events) {
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
    if (!step.queue.empty()) {
      AddQueueStep(step, span, run, rows, events);
      continue;
    }
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
  const QueueRows queues(recording);
  queues.AddNames(events);
  for (const ProfiledRun& run : recording.runs) AddRun(recording, run, calls, queues, events);
  const Json trace = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mge
