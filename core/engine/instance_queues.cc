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

constexpr int kMinCaptured = 2;  // least number of steps for which a record saves time

bool IsFailure(mge_code answer) { return answer != MGE_OK && answer != MGE_DEADLINE_EXCEEDED; }

bool CanCapture(const Segment& segment, const mge_queue_api& api) {
  return segment.capture_safe && segment.step_count >= kMinCaptured && api.capture_begin && api.capture_end && api.replay &&
         api.record_destroy;
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
  // A kernel that refuses its input data did not fail: the data are wrong.
  if (code == MGE_OUT_OF_RANGE) return Fail(errors::kIndexOutOfRange, TextOfBackend(code, error));
  if (code == MGE_INVALID_ARGUMENT) return Fail(errors::kNoResult, TextOfBackend(code, error));
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

absl::StatusOr<std::unique_ptr<InstanceQueues>> InstanceQueues::Create(const Plan& plan, QueueLimits& limits) {
  std::unique_ptr<InstanceQueues> out(new InstanceQueues(plan, limits));
  for (const PlanQueue& wanted : plan.queues) {
    Queue& q = out->queues_.emplace_back();
    q.device = wanted.device;
    q.api = wanted.device->queue_api();
    MGE_RETURN_IF_ERROR(out->CreateQueue(q, wanted.kind));
    MGE_RETURN_IF_ERROR(MakeFence(q, &q.fence));
    if (q.device->Is(MGE_DEVICE_GPU)) q.permits = &limits.Of(q.device->name(), KindOf(wanted));
  }
  const std::vector<size_t> permits = SharedPermits(plan);
  for (size_t i = 0; i < permits.size(); ++i) out->queues_[i].permit = permits[i];
  for (const Segment& s : plan.segments) {
    Records& records = out->records_.emplace_back();
    if (plan.red_zones || s.queue == kCallingThread || !CanCapture(s, *s.device->queue_api())) continue;
    records.state = Records::State::kNew;
    records.updates = s.device->queue_api()->capture_update != nullptr;
    records.latest.resize(s.bases.size());
  }
  return out;
}

absl::Status InstanceQueues::CreateQueue(Queue& q, int32_t kind) {
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) { return q.api->create(q.device->handle(), kind, &q.queue, e); });
  // A backend need not have communication queues: copy queues can copy between devices, too.
  if (code == MGE_UNIMPLEMENTED && kind == MGE_QUEUE_COMMUNICATION) return CreateQueue(q, MGE_QUEUE_COPY_IN);
  return code == MGE_OK ? absl::OkStatus()
                        : StatusOfBackend(code, error, fmt::format("device {}: creating a queue", q.device->name()));
}

InstanceQueues::~InstanceQueues() {
  ReleasePermits();
  for (Queue& q : queues_) {
    if (q.queue) q.api->destroy(q.queue);
  }
  // after the queues, which may have been replaying a record
  for (size_t i = 0; i < records_.size(); ++i) DestroyRecords(plan_.segments[i], records_[i]);
  for (Queue& q : queues_) {  // after all queues, which may wait for fences of others
    for (mge_fence* fence : {q.fence, q.steps}) {
      if (fence) q.api->fence_destroy(fence);
    }
    for (mge_stamp* stamp : q.stamps) {
      if (stamp) q.device->profile_api()->stamp_destroy(stamp);
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
  return QueryDevice(*q.device, "creating a fence",
                     [&](mge_error* e) { return q.api->fence_create(q.device->handle(), fence, e); });
}

absl::Status InstanceQueues::RunWatched(const Segment& segment, const mge_run& run, const RunState& control,
                                        StepChecks* checks) {
  Queue& q = queues_[static_cast<size_t>(segment.queue)];
  if (!q.steps) MGE_RETURN_IF_ERROR(MakeFence(q, &q.steps));
  for (int32_t i = segment.first_step; i < segment.first_step + segment.step_count; ++i) {
    const Step& step = plan_.steps[static_cast<size_t>(i)];
    if (checks) MGE_RETURN_IF_ERROR(checks->BeforeStep(step));
    if (control.observer) control.observer->BeginStep(i);
    if (control.observer) MGE_RETURN_IF_ERROR(TakeStamp(q, 0));
    MGE_RETURN_IF_ERROR(RunStep(step, run));
    if (control.observer) MGE_RETURN_IF_ERROR(TakeStamp(q, 1));
    MGE_RETURN_IF_ERROR(FinishStep(step, q, control));
    if (control.observer) {
      MGE_RETURN_IF_ERROR(TellStepTime(q, *control.observer));
      control.observer->EndStep();
    }
    if (checks) MGE_RETURN_IF_ERROR(checks->AfterStep(step));
  }
  return absl::OkStatus();
}

absl::Status InstanceQueues::TakeStamp(Queue& q, int index) {
  const mge_profile_api* api = q.device->profile_api();
  if (!api) return absl::OkStatus();
  mge_stamp*& stamp = q.stamps[index];
  if (!stamp) {
    MGE_RETURN_IF_ERROR(QueryDevice(*q.device, "creating a stamp",
                                    [&](mge_error* e) { return api->stamp_create(q.device->handle(), &stamp, e); }));
  }
  return QueryDevice(*q.device, "taking a stamp", [&](mge_error* e) { return api->stamp(q.queue, stamp, e); });
}

absl::Status InstanceQueues::TellStepTime(const Queue& q, RunObserver& observer) {
  const mge_profile_api* api = q.device->profile_api();
  if (!api) return absl::OkStatus();
  double us = 0;
  MGE_RETURN_IF_ERROR(QueryDevice(*q.device, "reading stamps",
                                  [&](mge_error* e) { return api->elapsed_us(q.stamps[0], q.stamps[1], &us, e); }));
  observer.StepTime(us);
  return absl::OkStatus();
}

absl::Status InstanceQueues::RunAndWait(int32_t queue, const Step& step, const mge_run& run, const RunState& control) {
  Queue& q = queues_[static_cast<size_t>(queue)];
  if (!q.steps) MGE_RETURN_IF_ERROR(MakeFence(q, &q.steps));
  MGE_RETURN_IF_ERROR(RunStep(step, run));
  return FinishStep(step, q, control);
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

void InstanceQueues::DestroyRecords(const Segment& segment, Records& records) {
  const Device* device = segment.device;
  for (const Record& r : records.kept) device->queue_api()->record_destroy(device->handle(), r.record);
  records.kept.clear();
}

void InstanceQueues::DropRecords() {
  for (size_t i = 0; i < records_.size(); ++i) {
    if (records_[i].state != Records::State::kRecorded) continue;
    DestroyRecords(plan_.segments[i], records_[i]);
    records_[i].state = Records::State::kWarm;
  }
}

// Ignores errors: the caller then enqueues the steps one by one, which reports the error with its reason.
InstanceQueues::Record* InstanceQueues::Capture(const Segment& segment, Records& records, const mge_run& run) {
  const Queue& q = queues_[static_cast<size_t>(segment.queue)];
  std::vector<Record>& kept = records.kept;
  const bool full = kept.size() == kMaxRecords, update = full && records.updates;
  auto oldest = std::ranges::min_element(kept, {}, &Record::used);
  if (full && !update) {
    segment.device->queue_api()->record_destroy(segment.device->handle(), oldest->record);
    kept.erase(oldest);
  }
  mge_error ignored;
  void* created = nullptr;
  bool ran = false;
  mge_code ended = CallBackend(ignored, [&](mge_error* e) { return q.api->capture_begin(q.queue, e); });
  if (ended == MGE_OK) {
    ran = RunSteps(segment, run).ok();
    ended = CallBackend(ignored, [&](mge_error* e) {
      return update ? q.api->capture_update(q.queue, oldest->record, e) : q.api->capture_end(q.queue, &created, e);
    });
  }
  if (ran && update && ended == MGE_UNIMPLEMENTED) {
    records.updates = false;
    return nullptr;
  }
  if (ran && ended == MGE_OK && (update || created)) {
    records.state = Records::State::kRecorded;
    Record& r = update ? *oldest : kept.emplace_back(Record{created});
    r.bases = records.latest;
    return &r;
  }
  if (created) segment.device->queue_api()->record_destroy(segment.device->handle(), created);
  DestroyRecords(segment, records);
  records.state = Records::State::kNever;
  return nullptr;
}

InstanceQueues::Record* InstanceQueues::ToReplay(const Segment& segment, Records& records, const mge_run& run) {
  if (records.state == Records::State::kNever) return nullptr;
  ++records.runs;
  bool stays = records.state != Records::State::kNew;  // as in the latest run
  for (size_t i = 0; i < segment.bases.size(); ++i) {
    void* const base = run.bases[segment.bases[i]];
    stays &= records.latest[i] == base;
    records.latest[i] = base;
  }
  if (records.state == Records::State::kNew) {
    records.state = Records::State::kWarm;
    return nullptr;
  }
  const auto same = std::ranges::find(records.kept, records.latest, &Record::bases);
  Record* r = same != records.kept.end() ? &*same : stays || records.updates ? Capture(segment, records, run) : nullptr;
  if (r) r->used = records.runs;
  return r;
}

absl::Status InstanceQueues::AcquirePermit(const Queue& q, const RunState& control) {
  Queue& mine = queues_[q.permit];
  if (mine.permitted || !mine.permits) return absl::OkStatus();
  if (mine.permits->TryAcquire()) {
    mine.permitted = true;
    return absl::OkStatus();
  }
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue& other = queues_[i];
    if (!other.permitted || other.permits != mine.permits) continue;
    for (Queue& user : queues_) {
      if (user.permit == i) MGE_RETURN_IF_ERROR(WaitForQueue(user, control));
    }
    other.permitted = false;
    mine.permitted = true;
    return absl::OkStatus();
  }
  // A run that waited while it holds a permit could close a circle of runs that wait for each other. So this run first
  // finishes the work that it has enqueued.
  for (Queue& own : queues_) {
    if (queues_[own.permit].permitted) MGE_RETURN_IF_ERROR(WaitForQueue(own, control));
  }
  ReleasePermits();
  MGE_RETURN_IF_ERROR(limits_.Acquire(*mine.permits, control));
  mine.permitted = true;
  return absl::OkStatus();
}

void InstanceQueues::ReleasePermits() {
  for (Queue& q : queues_) {
    if (std::exchange(q.permitted, false)) limits_.Release(*q.permits);
  }
}

absl::Status InstanceQueues::WaitForQueue(Queue& q, const RunState& control) {
  if (!q.steps) MGE_RETURN_IF_ERROR(MakeFence(q, &q.steps));
  mge_error error;
  mge_code code = q.api->signal(q.queue, q.steps, ++q.step_count, &error);
  if (code != MGE_OK) return FailureOf(q, code, error);
  MGE_ASSIGN_OR_RETURN(code, WaitForFence(*q.api, q.steps, q.step_count, &control));
  return code == MGE_OK ? absl::OkStatus() : FailureOf(q, code, ReasonOf(*q.api, q.steps, q.step_count));
}

absl::Status InstanceQueues::Enqueue(size_t index, const mge_run& run, const RunState& control, StepChecks* checks) {
  const Segment& segment = plan_.segments[index];
  Queue& q = queues_[static_cast<size_t>(segment.queue)];
  Records& records = records_[index];
  MGE_RETURN_IF_ERROR(AcquirePermit(q, control));
  mge_error error;
  for (const FencePoint& point : segment.waits) {
    const Queue& other = queues_[static_cast<size_t>(point.queue)];
    MGE_CHECK(ValueOf(point) <= other.signalled);
    mge_code code = q.api->wait(q.queue, other.fence, ValueOf(point), &error);
    if (code != MGE_OK) return FailureOf(q, code, error);
  }
  const bool watched = checks || control.observer;
  if (watched) {
    MGE_RETURN_IF_ERROR(RunWatched(segment, run, control, checks));
  } else if (const Record* r = ToReplay(segment, records, run)) {
    mge_code code = q.api->replay(q.queue, r->record, &error);
    if (code != MGE_OK) {
      return AddWhere(StatusOfKernel(code, error),
                      StepsPlace(plan_, segment.first_step, segment.first_step + segment.step_count - 1));
    }
    ++replays_;
  } else {
    MGE_RETURN_IF_ERROR(RunSteps(segment, run));
  }
  if (segment.signal == 0) return absl::OkStatus();
  mge_code code = q.api->signal(q.queue, q.fence, q.before + segment.signal, &error);
  if (code != MGE_OK) return FailureOf(q, code, error);
  q.signalled = q.before + segment.signal;
  return absl::OkStatus();
}

absl::Status InstanceQueues::HostWait(const FencePoint& point, const RunState& control) {
  Queue& q = queues_[static_cast<size_t>(point.queue)];
  const uint64_t value = ValueOf(point);
  if (value <= q.good) return absl::OkStatus();
  MGE_CHECK(value <= q.signalled);
  absl::StatusOr<mge_code> code = WaitForFence(*q.api, q.fence, value, &control);
  if (!code.ok()) {
    std::optional<Stretch> late = FirstThat([](mge_code answer) { return answer == MGE_DEADLINE_EXCEEDED; });
    return late ? AddWhere(code.status(), late->place) : code.status();
  }
  if (*code != MGE_OK) return FailureOf(q, *code, ReasonOf(*q.api, q.fence, value));
  q.good = value;
  return absl::OkStatus();
}

absl::Status InstanceQueues::FinishRun(const RunState& control) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    uint64_t signals = plan_.queues[i].signals;
    if (signals) MGE_RETURN_IF_ERROR(HostWait({static_cast<int32_t>(i), signals}, control));
  }
  for (size_t i = 0; i < queues_.size(); ++i) queues_[i].before += plan_.queues[i].signals;
  ReleasePermits();
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
    if (q.before + s.signal > q.signalled) return std::nullopt;  // neither this signal nor a later one was enqueued
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
  std::optional<Stretch> failed = FirstThat(IsFailure);
  if (failed) return AddWhere(StatusOfKernel(failed->answer, failed->reason), failed->place);
  return AddWhere(StatusOfKernel(code, error), fmt::format("device {}", queue.device->name()));
}

InstanceQueues::State InstanceQueues::Drain(std::chrono::nanoseconds patience) {
  ReleasePermits();  // also if the device does not stop: other runs must not wait for it
  Clock::time_point end = Clock::now() + patience;
  State state = State::kGood;
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue& q = queues_[i];
    mge_code code = q.end.Wait(*q.device, q.queue, end - Clock::now());
    if (code == MGE_DEADLINE_EXCEEDED) return State::kStuck;
    if (code != MGE_OK) state = State::kBroken;
    if (q.signalled > q.before && q.api->host_wait(q.fence, q.signalled, 0, nullptr) != MGE_OK) state = State::kBroken;
    q.before += plan_.queues[i].signals;
  }
  return state;
}

}  // namespace mge
