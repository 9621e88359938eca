// SPDX-License-Identifier: Apache-2.0
#include "core/engine/instance_queues.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/plan/host_step.h"
#include "core/plugin/ask.h"
#include "fmt/format.h"

namespace mge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeastCaptured = 2;  // least number of steps for which a record saves time

bool CanCapture(const Segment& segment, const mge_queue_api& api) {
  return segment.capture_safe && segment.step_count >= kLeastCaptured && api.capture_begin && api.capture_end &&
         api.replay && api.record_destroy;
}

// Returns the steps [first, last] as text: "between node 'a' (Relu) and node 'b' (Add)", and the setting that tells them
// apart.
std::string StepsPlace(const Plan& plan, int32_t first, int32_t last) {
  auto place = [&](int32_t step) { return UnitPlace(plan.units[plan.steps[step].unit]); };
  if (first == last) return place(first);
  return fmt::format("between {} and {} (MGE_DEBUG_CHECK_MEMORY=1 names the exact node)", place(first), place(last));
}

// Returns the error of a failed fence. The failure is permanent, so waiting again returns it.
mge_error ReasonOf(const mge_queue_api& api, mge_fence* fence, uint64_t value) {
  mge_error error;
  (void)api.host_wait(fence, value, 0, &error);
  return error;
}

}  // namespace

mge_code AnswerOfException(const Step& step, mge_error& error) {
  if (step.fn == RunHostStep) throw;
  return CallBackend(error, [](mge_error*) -> mge_code { throw; });
}

absl::Status StatusOfKernel(mge_code code, const mge_error& error) {
  // A kernel that refuses its input data (an index outside of a tensor) did not fail: the data are wrong.
  if (code == MGE_OUT_OF_RANGE || code == MGE_INVALID_ARGUMENT) {
    return Fail(errors::kIndexOutOfRange, TextOfBackend(code, error));
  }
  return StatusOfBackend(code, error, "a kernel");
}

std::string UnitPlace(const Unit& unit) {
  if (unit.nodes.empty()) return fmt::format("a {} that the planner added", UnitKindName(unit.kind));
  std::string place = fmt::format("node '{}' ({})", unit.nodes.front(), unit.ops.front());
  if (unit.nodes.size() > 1) place += fmt::format(" and {} more", unit.nodes.size() - 1);
  return place;
}

std::string StepPlace(const Unit& unit) {
  std::string place = UnitPlace(unit);
  return unit.kernel.empty() ? place : fmt::format("device {}, kernel {}, {}", unit.device, unit.kernel, place);
}

absl::StatusOr<std::unique_ptr<InstanceQueues>> InstanceQueues::Create(const Plan& plan) {
  std::unique_ptr<InstanceQueues> out(new InstanceQueues(plan));
  for (const PlanQueue& wanted : plan.queues) {
    Queue& q = out->queues_.emplace_back();
    q.device = wanted.device;
    q.api = wanted.device->queue_api();
    MGE_RETURN_IF_ERROR(AskDevice(*q.device, "creating a queue", [&](mge_error* e) {
      return q.api->create(q.device->handle(), wanted.kind, &q.queue, e);
    }));
    MGE_RETURN_IF_ERROR(MakeFence(q, &q.fence));
  }
  for (const Segment& s : plan.segments) {
    bool recorded = !plan.red_zones && s.queue != kCallingThread && CanCapture(s, *s.device->queue_api());
    out->records_.push_back({recorded ? Record::State::kNew : Record::State::kNever});
  }
  return out;
}

InstanceQueues::~InstanceQueues() {
  for (Queue& q : queues_) {
    if (q.queue) q.api->destroy(q.queue);
  }
  for (size_t i = 0; i < records_.size(); ++i) {  // after the queues, which may have been replaying a record
    const Device* device = plan_.segments[i].device;
    if (records_[i].record) device->queue_api()->record_destroy(device->handle(), records_[i].record);
  }
  for (Queue& q : queues_) {  // after all queues, which may wait for fences of others
    for (mge_fence* fence : {q.fence, q.steps}) {
      if (fence) q.api->fence_destroy(fence);
    }
  }
}

absl::Status InstanceQueues::RunStep(const Step& step, const mge_run& run) const {
  mge_code code = CallStep(step, run);
  if (code == MGE_OK) return absl::OkStatus();
  return AddWhere(StatusOfKernel(code, *run.error), StepPlace(plan_.units[step.unit]));
}

absl::Status InstanceQueues::RunSteps(const Segment& segment, const mge_run& run) const {
  const Step* step = plan_.steps.data() + segment.first_step;
  for (const Step* end = step + segment.step_count; step != end; ++step) MGE_RETURN_IF_ERROR(RunStep(*step, run));
  return absl::OkStatus();
}

absl::Status InstanceQueues::MakeFence(const Queue& q, mge_fence** fence) {
  return AskDevice(*q.device, "creating a fence",
                   [&](mge_error* e) { return q.api->fence_create(q.device->handle(), fence, e); });
}

absl::Status InstanceQueues::RunWatched(const Segment& segment, const mge_run& run, const RunState& control,
                                        RedZones* red_zones) {
  Queue& q = queues_[static_cast<size_t>(segment.queue)];
  if (!q.steps) MGE_RETURN_IF_ERROR(MakeFence(q, &q.steps));
  for (int32_t i = segment.first_step; i < segment.first_step + segment.step_count; ++i) {
    const Step& step = plan_.steps[static_cast<size_t>(i)];
    if (red_zones) MGE_RETURN_IF_ERROR(red_zones->BeforeStep(step));
    if (control.observer) control.observer->BeginStep(i);
    MGE_RETURN_IF_ERROR(RunStep(step, run));
    MGE_RETURN_IF_ERROR(FinishStep(step, q, control));
    if (control.observer) control.observer->EndStep();
    if (red_zones) MGE_RETURN_IF_ERROR(red_zones->AfterStep(step));
  }
  return absl::OkStatus();
}

absl::Status InstanceQueues::FinishStep(const Step& step, Queue& q, const RunState& control) {
  auto place = [&] {
    const Unit& unit = plan_.units[step.unit];
    return unit.kernel.empty() ? fmt::format("device {}, {}", q.device->name(), UnitPlace(unit)) : StepPlace(unit);
  };
  mge_error error;
  mge_code code = q.api->signal(q.queue, q.steps, ++q.step_count, &error);
  if (code == MGE_OK) {
    absl::StatusOr<mge_code> waited = WaitForFence(*q.api, q.steps, q.step_count, &control);
    if (!waited.ok()) return AddWhere(waited.status(), place());
    if (*waited == MGE_OK) return absl::OkStatus();
    code = *waited;
    error = ReasonOf(*q.api, q.steps, q.step_count);
  }
  return AddWhere(StatusOfKernel(code, error), place());
}

// Ignores errors: the caller then enqueues the steps one by one, which reports the error with its reason.
bool InstanceQueues::Capture(const Segment& segment, Record& record, const mge_run& run) {
  const Queue& q = queues_[static_cast<size_t>(segment.queue)];
  record.state = Record::State::kNever;
  mge_error ignored;
  if (CallBackend(ignored, [&](mge_error* e) { return q.api->capture_begin(q.queue, e); }) != MGE_OK) return false;
  bool ran = RunSteps(segment, run).ok();
  bool ended = CallBackend(ignored, [&](mge_error* e) { return q.api->capture_end(q.queue, &record.record, e); }) == MGE_OK;
  if (ran && ended && record.record) {
    record.state = Record::State::kRecorded;
    return true;
  }
  if (record.record) q.api->record_destroy(q.device->handle(), std::exchange(record.record, nullptr));
  return false;
}

absl::Status InstanceQueues::Enqueue(size_t index, const mge_run& run, const RunState& control, RedZones* red_zones) {
  const Segment& segment = plan_.segments[index];
  const Queue& q = queues_[static_cast<size_t>(segment.queue)];
  Record& record = records_[index];
  mge_error error;
  for (const FencePoint& point : segment.waits) {
    mge_code code = q.api->wait(q.queue, queues_[static_cast<size_t>(point.queue)].fence, ValueOf(point), &error);
    if (code != MGE_OK) return FailureOf(q, code, error);
  }
  const bool watched = red_zones || control.observer;
  if (record.state == Record::State::kWarm && !watched) Capture(segment, record, run);
  if (record.state == Record::State::kRecorded && !watched) {
    mge_code code = q.api->replay(q.queue, record.record, &error);
    if (code != MGE_OK) {
      return AddWhere(StatusOfKernel(code, error),
                      StepsPlace(plan_, segment.first_step, segment.first_step + segment.step_count - 1));
    }
    ++replays_;
  } else if (watched) {
    MGE_RETURN_IF_ERROR(RunWatched(segment, run, control, red_zones));
  } else {
    MGE_RETURN_IF_ERROR(RunSteps(segment, run));
    if (record.state == Record::State::kNew) record.state = Record::State::kWarm;
  }
  if (segment.signal == 0) return absl::OkStatus();
  mge_code code = q.api->signal(q.queue, q.fence, q.before + segment.signal, &error);
  return code == MGE_OK ? absl::OkStatus() : FailureOf(q, code, error);
}

absl::Status InstanceQueues::HostWait(const FencePoint& point, const RunState& control) {
  const Queue& q = queues_[static_cast<size_t>(point.queue)];
  const uint64_t value = ValueOf(point);
  absl::StatusOr<mge_code> code = WaitForFence(*q.api, q.fence, value, &control);
  if (!code.ok()) {
    std::optional<Stretch> late = FirstThat([](mge_code answer) { return answer == MGE_DEADLINE_EXCEEDED; });
    return late ? AddWhere(code.status(), late->place) : code.status();
  }
  return *code == MGE_OK ? absl::OkStatus() : FailureOf(q, *code, ReasonOf(*q.api, q.fence, value));
}

void InstanceQueues::DropRecords() {
  for (size_t i = 0; i < records_.size(); ++i) {
    Record& record = records_[i];
    if (record.state == Record::State::kNever) continue;
    const Device* device = plan_.segments[i].device;
    if (record.record) device->queue_api()->record_destroy(device->handle(), std::exchange(record.record, nullptr));
    record.state = Record::State::kNew;
  }
}

absl::Status InstanceQueues::FinishRun(const RunState& control) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    uint64_t signals = plan_.queues[i].signals;
    if (signals) MGE_RETURN_IF_ERROR(HostWait({static_cast<int32_t>(i), signals}, control));
  }
  for (size_t i = 0; i < queues_.size(); ++i) queues_[i].before += plan_.queues[i].signals;
  return absl::OkStatus();
}

std::optional<InstanceQueues::Stretch> InstanceQueues::FirstThat(bool (*wanted)(mge_code)) const {
  std::vector<int32_t> begin(queues_.size(), -1);  // per queue: the first step after its last signal; -1: none
  for (const Segment& s : plan_.segments) {
    if (s.queue == kCallingThread) continue;
    int32_t& first = begin[static_cast<size_t>(s.queue)];
    if (first < 0) first = s.first_step;
    if (s.signal == 0) continue;
    const Queue& q = queues_[static_cast<size_t>(s.queue)];
    mge_error reason;
    mge_code answer = q.api->host_wait(q.fence, q.before + s.signal, 0, &reason);
    if (wanted(answer)) {
      std::string steps = StepsPlace(plan_, first, s.first_step + s.step_count - 1);
      return Stretch{answer, std::move(reason), fmt::format("device {}, {}", q.device->name(), steps)};
    }
    first = -1;
  }
  return std::nullopt;
}

absl::Status InstanceQueues::FailureOf(const Queue& queue, mge_code code, const mge_error& error) const {
  std::optional<Stretch> failed =
      FirstThat([](mge_code answer) { return answer != MGE_OK && answer != MGE_DEADLINE_EXCEEDED; });
  if (failed) return AddWhere(StatusOfKernel(failed->answer, failed->reason), failed->place);
  return AddWhere(StatusOfKernel(code, error), fmt::format("device {}", queue.device->name()));
}

InstanceQueues::State InstanceQueues::Drain(std::chrono::nanoseconds patience) {
  Clock::time_point end = Clock::now() + patience;
  State state = State::kGood;
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue& q = queues_[i];
    mge_code code = q.end.Wait(*q.device, q.queue, end - Clock::now());
    if (code == MGE_DEADLINE_EXCEEDED) return State::kStuck;
    if (code != MGE_OK) state = State::kBroken;
    // MGE_DEADLINE_EXCEEDED means that the signal was never enqueued, which is not a failure of the queue.
    mge_error error;
    q.before += plan_.queues[i].signals;
    code = q.api->host_wait(q.fence, q.before, 0, &error);
    if (code != MGE_OK && code != MGE_DEADLINE_EXCEEDED) state = State::kBroken;
  }
  return state;
}

}  // namespace mge
