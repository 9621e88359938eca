// SPDX-License-Identifier: Apache-2.0
// The runs of a session.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/engine/io_places.h"
#include "core/engine/run_outputs.h"
#include "core/engine/session.h"
#include "core/plan/memory/state_memory.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns whether the places are all outputs of the model in its order.
bool AreAll(std::span<const int> places, int count) {
  if (places.empty()) return true;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] != static_cast<int>(i)) return false;
  }
  return static_cast<int>(places.size()) == count;
}

// Returns whether the queues of devices can do a run of this plan while its caller goes on.
bool CanBeEnqueued(const Plan& plan) {
  return !plan.continuation && !plan.queues.empty() && !plan.RunsAlone() && plan.accesses.empty() &&
         std::all_of(plan.outputs.begin(), plan.outputs.end(), [](const BoundValue& v) { return v.place.device; });
}

}  // namespace

absl::Status Session::CheckRequest(const RunRequest& request) const {
  const size_t outputs = request.places.empty() ? graph().outputs().size() : request.places.size();
  if (request.inputs.size() != graph().inputs().size() || request.outputs.size() != outputs) {
    return Fail(errors::kBadInput, "the number of inputs or outputs does not fit the model",
                {.what = fmt::format("expected {} and {}, got {} and {}", input_count(), outputs, request.inputs.size(),
                                     request.outputs.size())});
  }
  const bool is_empty =
      trains_ &&
      std::ranges::any_of(request.inputs, [](const HostValue& v) { return v.tensor.defined() && v.tensor.rank() > 0; }) &&
      std::ranges::none_of(request.inputs, [](const HostValue& v) {
        return v.tensor.defined() && v.tensor.rank() > 0 && v.tensor.elements() > 0;
      });
  if (is_empty) {
    return Fail(errors::kBadInput, "the batch is empty",
                {.what = "no input has an element, so that there is no loss",
                 .where = "training",
                 .fix = "give at least one example in each step"});
  }
  for (const std::shared_ptr<RunFence>& fence : request.after) {
    if (&fence->runtime() == runtime_.get()) continue;
    return Fail(errors::kApiMisuse, "a run cannot wait for a fence of another runtime",
                {.fix = "wait for that fence on the host, then enqueue the run"});
  }
  return absl::OkStatus();
}

// Calls run() with the session's threads, seed and default time limit in `control`.
template <typename F>
absl::Status Session::WithControl(RunState& control, F run) {
  control.pool = &runtime_->pool();
  control.width = threads();
  // The default seed and deadline are for this run only, so the caller's values are restored.
  absl::Cleanup restore = [&control, deadline = control.deadline, seed = control.seed] {
    control.deadline = deadline;
    control.seed = seed;
  };
  // With a seed of its own, a run repeats its random numbers. Otherwise later runs of the session draw others.
  // The runs of a training session are its steps, which are counted with a seed, too.
  const bool counts = trains_ || (!control.seed && !evaluates_);
  const uint64_t blocks = counts ? program_->context().states->NextRunBlocks() : 0;
  control.next_random = control.seed ? 0 : blocks;
  if (control.seed == 0) control.seed = seed_;
  if (!control.deadline && default_timeout_s_ > 0) {
    control.deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                              std::chrono::duration<double>(default_timeout_s_));
  }
  std::optional<Deadlines::Watch> watch;
  if (control.deadline) {
    watch.emplace(runtime_->deadlines(), *control.deadline, control.cancel);
    control.Begin();
  }
  absl::Cleanup end = [&] {
    if (watch) control.End();
  };
  control.staged_bytes = 0;
  control.operations = 0;
  absl::Status status = run();
  operations_.store(control.operations, std::memory_order_relaxed);
  if (control.staged_bytes) staged_bytes_.fetch_add(control.staged_bytes, std::memory_order_relaxed);
  return status;
}

absl::StatusOr<std::shared_ptr<const Plan>> Session::PlanOf(Program& program, const RunRequest& request,
                                                            const IoPlace& created, RunState& control) {
  if (!control.observer && request.wait) {
    if (std::shared_ptr<const Plan> known = program.RecentPlanFor(request.inputs, request.outputs, created)) return known;
  }
  absl::InlinedVector<InputType, 8> types;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    MGE_ASSIGN_OR_RETURN(InputType type, TypeWithPlace(program.graph(), program.context(), i, request.inputs[i]));
    types.push_back(std::move(type));
  }
  MGE_ASSIGN_OR_RETURN(const OutputPlaceList places,
                       OutputPlaces(program.graph(), program.context(), request.outputs, created));
  for (size_t i = 0; i < request.outputs.size() && !request.wait && created.device; ++i) {
    if (!request.outputs[i].tensor.defined() || (!places.empty() && places[i].device)) continue;
    const ValueId output = program.graph().outputs()[i];
    return Fail(errors::kBadInput,
                fmt::format("output '{}' of an enqueued run is in plain host memory", program.graph().value(output).name),
                {.fix = "provide a tensor on a device or in page-locked memory, or none"});
  }
  return PlanForRun(program, types, control, places);
}

absl::StatusOr<std::shared_ptr<RunFence>> Session::Execute(Program& program, const RunRequest& request,
                                                           const std::shared_ptr<RunFence>& previous, RunState& control) {
  const IoPlace created = request.wait ? created_ : DevicePlace(program.context());
  std::shared_ptr<const Plan> plan;  // nullptr: the replicas run the model
  if (replicas_) {
    for (size_t i = 0; i < request.inputs.size(); ++i) MGE_RETURN_IF_ERROR(InputTypeOf(i, request.inputs[i]).status());
  } else {
    // For a plan, page-locked memory of another device than the session's is host memory.
    MGE_ASSIGN_OR_RETURN(plan, PlanOf(program, request, created.pinned ? IoPlace() : created, control));
  }
  RunOutputs outputs(runtime_, request.outputs, created);
  if (!request.wait && plan && CanBeEnqueued(*plan)) {
    MGE_ASSIGN_OR_RETURN(const std::span<HostValue> results, outputs.ForPlan(*plan, request.inputs));
    return RunFence::Start(runtime_, plan, {request.inputs.begin(), request.inputs.end()}, {results.begin(), results.end()},
                           control, request.after, previous);
  }
  absl::Status ended;
  if (previous) MGE_RETURN_IF_ERROR(WaitForRun(*previous, control, &ended));  // its failure is its own
  for (const std::shared_ptr<RunFence>& earlier : request.after) {
    MGE_RETURN_IF_ERROR(WaitForRun(*earlier, control, &ended));
    if (ended.ok()) continue;
    if (request.wait) return ended;
    return RunFence::Ended(runtime_, ended);
  }
  RunTurn::Guard turn;
  if (!plan || plan->RunsAlone()) {
    MGE_ASSIGN_OR_RETURN(turn, turn_->Take(control));
  }
  if (plan) {
    MGE_ASSIGN_OR_RETURN(const std::span<HostValue> results, outputs.ForPlan(*plan, request.inputs));
    MGE_RETURN_IF_ERROR(RunPlan(plan, "", request.inputs, results, control));
  } else {
    MGE_RETURN_IF_ERROR(replicas_->Run(request.inputs, outputs.InHostMemory(graph(), request.places), control));
  }
  MGE_ASSIGN_OR_RETURN(const uint64_t copied, outputs.Deliver());
  control.staged_bytes += copied;
  turn = {};
  if (check_) MGE_RETURN_IF_ERROR(check_(request.inputs, request.outputs, request.places));
  if (request.wait) return nullptr;
  return RunFence::Ended(runtime_);
}

absl::StatusOr<std::shared_ptr<RunFence>> Session::Submit(const RunRequest& request, RunState& control) {
  MGE_RETURN_IF_ERROR(CheckRequest(request));
  std::shared_ptr<Program> subset;
  if (!replicas_ && !AreAll(request.places, output_count())) {
    MGE_ASSIGN_OR_RETURN(subset, ProgramFor(request.places));
  }
  Program& program = subset ? *subset : *program_;
  latest_.store(&program, std::memory_order_relaxed);
  if (!request.wait) ReleasedRuns().Reclaim({});
  std::unique_lock<std::recursive_mutex> enqueuing;
  std::shared_ptr<RunFence> previous, fence;
  const bool ordered = stream_ && !request.wait;
  if (ordered) {
    // In the callback of an asynchronous run, this wait would be for that run.
    if (!DependencyEngine::InRun()) MGE_RETURN_IF_ERROR(runtime_->engine().WaitForVariable(stream_->order));
    enqueuing = std::unique_lock(stream_->mutex);
    previous = stream_->last.lock();
  }
  MGE_RETURN_IF_ERROR(WithControl(control, [&]() -> absl::Status {
    MGE_ASSIGN_OR_RETURN(fence, Execute(program, request, previous, control));
    return absl::OkStatus();
  }));
  if (ordered) stream_->last = fence;
  return fence;
}

void Session::Post(OwnedRunRequest request, RunState& control,
                   std::function<void(absl::Status, std::vector<HostValue>)> done) {
  std::unique_lock<std::recursive_mutex> enqueuing;
  std::shared_ptr<RunFence> previous;  // on the stream
  if (stream_) {
    enqueuing = std::unique_lock(stream_->mutex);
    previous = stream_->last.lock();
  }
  auto run = [self = shared_from_this(), request = std::move(request), &control, previous = std::move(previous),
              done = std::move(done)]() mutable {
    absl::Status status = NoThrow([&] {
      absl::Status ended;
      if (previous) MGE_RETURN_IF_ERROR(WaitForRun(*previous, control, &ended));
      previous.reset();
      const RunRequest run = {
          .inputs = request.inputs, .outputs = request.outputs, .places = request.places, .after = request.after};
      return self->Submit(run, control).status();
    });
    request.inputs.clear();  // `done` may tell their owner that the run has ended
    done(std::move(status), std::move(request.outputs));
    return absl::OkStatus();  // `done` has received the status
  };
  const std::optional<int> priority = control.priority;
  Operation operation = {.run = std::move(run),
                         .device = device().name(),
                         .work = HasQueues(device()) ? Work::kDeviceRun : Work::kCpuRun,
                         .priority = priority.value_or(0),
                         .prioritized = priority.has_value()};
  if (stream_) {
    operation.writes = {stream_->order};
    operation.device = stream_->name;  // each stream has workers of its own, so that two streams overlap
  }
  if (inline_) {
    (void)NoThrow(operation.run);
    return;
  }
  runtime_->engine().Push(std::move(operation));
}

}  // namespace mge
