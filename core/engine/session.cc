// SPDX-License-Identifier: Apache-2.0
#include "core/engine/session.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/base/nearest.h"
#include "core/engine/io_places.h"
#include "core/engine/output_binding.h"
#include "core/engine/session_context.h"
#include "core/ops/effects.h"
#include "core/plan/fallback_log.h"
#include "core/plan/memory/state_memory.h"
#include "core/plugin/context.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::StatusOr<int> IndexOf(const Graph& graph, const std::vector<ValueId>& values, std::string_view what,
                            std::string_view name) {
  // Found by the name's value: a caller may ask for thousands of inputs, one by one.
  const auto known = std::find(values.begin(), values.end(), graph.FindValue(std::string(name)));
  if (known != values.end()) return static_cast<int>(known - values.begin());
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    if (graph.value(values[i]).name == name) return static_cast<int>(i);
    names.push_back(graph.value(values[i]).name);
  }
  return Fail(
      errors::kBadInput, fmt::format("the model has no {} '{}'", what, name),
      {.what = fmt::format("its {}s are: {}", what, fmt::join(names, ", ")), .fix = DidYouMeanOr(Nearest(name, names), "")});
}

// Logs one warning about all parts of the model that ONNX forbids but MGE accepts, and each tensor that is made dense.
void WarnOfModel(const onnx::Model& model, const PlanServices& services) {
  constexpr size_t kNamed = 3;
  for (const std::string& name : model.info.densified) {
    if (services.fallbacks) services.fallbacks->Log(fmt::format("the sparse tensor '{}' is made dense", name));
  }
  const std::vector<std::string>& all = model.info.liberties;
  if (all.empty()) return;
  const size_t named = std::min(all.size(), kNamed);
  services.logger.Warning("graph '{}' breaks rules of ONNX and is accepted: {}{}", model.graph.name,
                          fmt::join(all.begin(), all.begin() + static_cast<int64_t>(named), "; "),
                          named < all.size() ? fmt::format("; and {} more", all.size() - named) : "");
}

void WarnOfDumps(const Snapshot& settings, const Logger& logger) {
  if (!settings.Get<kDebugDumpInputs>() || !settings.Get<kDebugDumpDir>().empty()) return;
  logger.Warning("{} has no effect without {}, the folder for the files", kDebugDumpInputs.key, kDebugDumpDir.key);
}

constexpr size_t kMaxSubsets = 8;

// Replaces the outputs of the model by the named values.
absl::Status SelectOutputs(const std::vector<std::string>& names, onnx::Model& model) {
  Graph& graph = model.graph;
  std::unordered_map<std::string_view, ValueId> values;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (!graph.value(v).dead) values.emplace(graph.value(v).name, v);
  }
  std::vector<ValueId> outputs;
  std::vector<onnx::NamedType> declared;
  for (const std::string& name : names) {
    auto at = values.find(name);
    if (at == values.end()) {
      std::vector<std::string> known;
      for (const auto& [other, id] : values) known.emplace_back(other);
      return Fail(errors::kBadInput, fmt::format("the model has no value '{}'.{}", name, DidYouMean(Nearest(name, known))),
                  {.where = "outputs of the session options"});
    }
    if (std::find(outputs.begin(), outputs.end(), at->second) != outputs.end()) {
      return Fail(errors::kBadInput, fmt::format("value '{}' is named twice", name),
                  {.where = "outputs of the session options", .fix = "name each value once"});
    }
    outputs.push_back(at->second);
    auto same = std::find_if(model.info.outputs.begin(), model.info.outputs.end(),
                             [&](const onnx::NamedType& t) { return t.name == name; });
    declared.push_back(same == model.info.outputs.end() ? onnx::NamedType{name, {}} : *same);
  }
  graph.outputs() = std::move(outputs);
  model.info.outputs = std::move(declared);
  return absl::OkStatus();
}

// Returns whether the caller wants all outputs in plain host memory.
bool InHostMemory(const Plan& plan) {
  auto plain = [](const BoundValue& v) { return !v.place.device && !v.move_to; };
  return std::all_of(plan.outputs.begin(), plan.outputs.end(), plain);
}

std::vector<ValueType> OutputTypes(const Graph& graph, const onnx::ModelInfo& info) {
  std::vector<ValueType> out;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value& v = graph.value(graph.outputs()[i]);
    out.push_back({v.type, v.kind});
    if (i >= info.outputs.size() || info.outputs[i].type.kind != v.kind) continue;
    // A declared type that contradicts the inferred one is ignored.
    absl::StatusOr<TensorType> both = MergeTypes(info.outputs[i].type.type, v.type, v.name);
    if (both.ok()) out.back().type = *std::move(both);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Session>> Session::Load(std::shared_ptr<Runtime> runtime, const std::string& path,
                                                       const SessionOptions& options) {
  onnx::ReadOptions read;
  read.allocator = &runtime->devices().host().host_allocator();
  MGE_ASSIGN_OR_RETURN(onnx::Model model, onnx::ReadModel(path, read));
  return Create(std::move(runtime), std::move(model), options);
}

absl::StatusOr<std::shared_ptr<Session>> Session::Create(std::shared_ptr<Runtime> runtime, onnx::Model model,
                                                         const SessionOptions& options) {
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const Snapshot> settings, runtime->registry().SnapshotWith(options.settings));
  if (!options.outputs.empty()) MGE_RETURN_IF_ERROR(SelectOutputs(options.outputs, model));
  MGE_ASSIGN_OR_RETURN(const Resolution found, runtime->ResolveDevice(options.device, *settings));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const PlanContext> context, MakePlanContext(*runtime, options, settings, found));
  WarnOfDumps(*settings, runtime->logger());
  WarnOfModel(model, *context->services);
  std::shared_ptr<Session> session(new Session);
  session->runtime_ = std::move(runtime);
  session->info_ = std::move(model.info);
  session->default_timeout_s_ = settings->Get<kRunTimeout>().count();
  session->seed_ = static_cast<uint64_t>(settings->Get<kSeed>());
  MarkStates(model.graph);
  MGE_ASSIGN_OR_RETURN(session->program_, Program::Create(std::move(model.graph), std::move(context)));
  const DeviceUse& first = found.devices.front();
  session->inline_ = first.synchronous;
  if (first.stream != kNoStream) session->stream_ = session->runtime_->streams().Get(first.device->name(), first.stream);
  MGE_ASSIGN_OR_RETURN(session->pinned_, PinnedDevice(session->runtime_->devices(), first.pinned));
  if (options.outputs_on_device) session->created_ = DevicePlace(session->program_->context());
  session->output_types_ = OutputTypes(session->graph(), session->info_);
  return session;
}

Session::~Session() {
  if (!program_) return;
  const std::shared_ptr<const PlanContext> context = program_->shared_context();
  program_.reset();  // plans that others still hold keep their memory
  context->services->shared_constants->RemoveExpired();
  for (Device* device : context->devices) device->TrimIdle();
}

absl::StatusOr<int> Session::InputIndex(std::string_view name) const {
  return IndexOf(graph(), graph().inputs(), "input", name);
}

absl::StatusOr<int> Session::OutputIndex(std::string_view name) const {
  return IndexOf(graph(), graph().outputs(), "output", name);
}

absl::Status Session::Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control) {
  if (static_cast<int>(inputs.size()) != input_count() || static_cast<int>(outputs.size()) != output_count()) {
    return Fail(errors::kBadInput, "the number of inputs or outputs does not fit the model",
                {.what = fmt::format("expected {} and {}, got {} and {}", input_count(), output_count(), inputs.size(),
                                     outputs.size())});
  }
  return RunProgram(*program_, inputs, outputs, control);
}

absl::StatusOr<std::shared_ptr<Program>> Session::ProgramFor(std::span<const int> places) {
  std::lock_guard lock(subsets_mutex_);
  auto at = std::find_if(subsets_.begin(), subsets_.end(), [&](const Subset& s) {
    return std::equal(s.places.begin(), s.places.end(), places.begin(), places.end());
  });
  if (at != subsets_.end()) {
    subsets_.splice(subsets_.begin(), subsets_, at);
    return subsets_.front().program;
  }
  Graph graph = program_->graph();
  std::vector<ValueId> outputs;
  for (int place : places) outputs.push_back(graph.outputs()[static_cast<size_t>(place)]);
  graph.outputs() = std::move(outputs);
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Program> program, Program::Create(std::move(graph), program_->shared_context()));
  subsets_.push_front({{places.begin(), places.end()}, program});
  if (subsets_.size() > kMaxSubsets) subsets_.pop_back();
  return program;
}

std::shared_ptr<const Plan> Session::last_plan() const {
  if (replicas_) return replicas_->last_plan();
  std::lock_guard lock(subsets_mutex_);
  for (const Subset& subset : subsets_) {
    if (subset.program.get() == latest_.load(std::memory_order_relaxed)) return subset.program->recent();
  }
  return program_->recent();
}

absl::Status Session::RunSome(std::span<const HostValue> inputs, std::span<const int> places, std::span<HostValue> outputs,
                              RunState& control) {
  if (replicas_) {  // they compute all outputs
    std::vector<HostValue> all(static_cast<size_t>(output_count()));
    for (size_t i = 0; i < places.size(); ++i) all[static_cast<size_t>(places[i])] = outputs[i];
    MGE_RETURN_IF_ERROR(Run(inputs, all, control));
    for (size_t i = 0; i < places.size(); ++i) outputs[i] = std::move(all[static_cast<size_t>(places[i])]);
    return absl::OkStatus();
  }
  std::shared_ptr<Program> program = program_;
  bool all = static_cast<int>(places.size()) == output_count();
  for (size_t i = 0; all && i < places.size(); ++i) all = places[i] == static_cast<int>(i);
  if (!all) {
    MGE_ASSIGN_OR_RETURN(program, ProgramFor(places));
  }
  return RunProgram(*program, inputs, outputs, control);
}

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
  control.next_random = control.seed ? 0 : program_->context().states->NextRunBlocks();
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

absl::Status Session::RunProgram(Program& program, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                                 RunState& control) {
  latest_.store(&program, std::memory_order_relaxed);
  return WithControl(control, [&]() -> absl::Status {
    if (replicas_) return RunReplicas(inputs, outputs, created_, control);
    if (!control.observer && !pinned_.device) {
      if (std::shared_ptr<const Plan> known = program.RecentPlanFor(inputs, outputs, created_)) {
        return InHostMemory(*known) ? RunPlan(known, "", inputs, outputs, control)
                                    : RunWithPlaces(known, inputs, outputs, control);
      }
    }
    absl::InlinedVector<InputType, 8> types;
    for (size_t i = 0; i < inputs.size(); ++i) {
      MGE_ASSIGN_OR_RETURN(InputType type, TypeWithPlace(program.graph(), program.context(), i, inputs[i]));
      types.push_back(std::move(type));
    }
    MGE_ASSIGN_OR_RETURN(const OutputPlaceList places, OutputPlaces(program.graph(), program.context(), outputs, created_));
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, PlanForRun(program, types, control, places));
    return pinned_.device ? RunPinned(plan, inputs, outputs, control) : RunInTurn(plan, inputs, outputs, control);
  });
}

absl::Status Session::RunPinned(const std::shared_ptr<const Plan>& plan, std::span<const HostValue> inputs,
                                std::span<HostValue> outputs, RunState& control) {
  auto create = [&](DType dtype, const Shape& shape) {
    return DeviceMemory::Create(*pinned_.device, MGE_MEMORY_PINNED, dtype, shape, runtime_);
  };
  std::vector<size_t> created;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BoundValue& bound = plan->outputs[i];
    if (outputs[i].tensor.defined() || bound.place.device || bound.move_to) continue;
    created.push_back(i);
    if (bound.location.kind != Location::Kind::kSlot || bound.type.dtype == DType::kString) continue;
    MGE_ASSIGN_OR_RETURN(outputs[i].tensor, create(bound.type.dtype, bound.type.dims));
  }
  MGE_RETURN_IF_ERROR(RunInTurn(plan, inputs, outputs, control));
  for (size_t i : created) {
    Tensor& tensor = outputs[i].tensor;
    if (!tensor.defined() || tensor.dtype() == DType::kString || DeviceMemory::Of(tensor)) continue;
    MGE_ASSIGN_OR_RETURN(Tensor copy, create(tensor.dtype(), tensor.shape()));
    MGE_RETURN_IF_ERROR(CopyTensor(tensor, copy));
    tensor = std::move(copy);
  }
  return absl::OkStatus();
}

absl::Status Session::RunInTurn(const std::shared_ptr<const Plan>& plan, std::span<const HostValue> inputs,
                                std::span<HostValue> outputs, RunState& control) {
  if (plan->RunsAlone()) MGE_RETURN_IF_ERROR(turn_.Take(control));
  absl::Cleanup end = [&] {
    if (plan->RunsAlone()) turn_.End();
  };
  return RunWithPlaces(plan, inputs, outputs, control);
}

absl::StatusOr<InputType> Session::InputTypeOf(size_t i, const HostValue& input) const {
  return TypeWithPlace(graph(), program_->context(), i, input);
}

absl::Status Session::CreateOutputs(const Plan& plan, std::span<HostValue> outputs) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BoundValue& bound = plan.outputs[i];
    if (!bound.place.device || outputs[i].tensor.defined()) continue;
    absl::StatusOr<Tensor> created =
        DeviceMemory::Create(*bound.place.device, MGE_MEMORY_DEVICE, bound.type.dtype, bound.type.dims, runtime_);
    if (!created.ok()) return AddWhere(created.status(), fmt::format("output '{}'", bound.name));
    outputs[i].tensor = *std::move(created);
  }
  return absl::OkStatus();
}

absl::Status Session::RunWithPlaces(const std::shared_ptr<const Plan>& plan, std::span<const HostValue> inputs,
                                    std::span<HostValue> outputs, RunState& control) {
  MGE_RETURN_IF_ERROR(CreateOutputs(*plan, outputs));
  const std::vector<BoundValue>& bound = plan->outputs;
  if (std::none_of(bound.begin(), bound.end(), [](const BoundValue& v) { return v.move_to; })) {
    return RunPlan(plan, "", inputs, outputs, control);
  }
  std::vector<HostValue> computed(outputs.begin(), outputs.end());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (bound[i].move_to) computed[i] = HostValue();
  }
  MGE_RETURN_IF_ERROR(RunPlan(plan, "", inputs, computed, control));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool plain = computed[i].kind == ValueKind::kTensor && computed[i].tensor.dtype() != DType::kString;
    if (!bound[i].move_to || !plain) {
      outputs[i] = std::move(computed[i]);
      continue;
    }
    const Tensor& from = computed[i].tensor;
    Tensor& to = outputs[i].tensor;
    if (to.defined()) {
      MGE_RETURN_IF_ERROR(CheckFits(bound[i].name, from.dtype(), from.shape(), to));
    } else {
      MGE_ASSIGN_OR_RETURN(to,
                           DeviceMemory::Create(*bound[i].move_to, MGE_MEMORY_DEVICE, from.dtype(), from.shape(), runtime_));
    }
    MGE_RETURN_IF_ERROR(CopyTensor(from, to));
    control.staged_bytes += static_cast<uint64_t>(from.bytes());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<RunFence>> Session::Enqueue(std::span<const HostValue> inputs, std::span<HostValue> outputs,
                                                           RunState& control,
                                                           std::span<const std::shared_ptr<RunFence>> after) {
  if (static_cast<int>(inputs.size()) != input_count() || static_cast<int>(outputs.size()) != output_count()) {
    return Fail(errors::kBadInput, "the number of inputs or outputs does not fit the model",
                {.what = fmt::format("expected {} and {}, got {} and {}", input_count(), output_count(), inputs.size(),
                                     outputs.size())});
  }
  for (const std::shared_ptr<RunFence>& fence : after) {
    if (&fence->runtime() == runtime_.get()) continue;
    return Fail(errors::kApiMisuse, "a run cannot wait for a fence of another runtime",
                {.fix = "wait for that fence on the host, then enqueue the run"});
  }
  const PlanContext& context = program_->context();
  std::shared_ptr<RunFence> fence;
  std::unique_lock<std::mutex> enqueuing;
  std::shared_ptr<RunFence> previous;
  if (stream_) {
    // In the callback of an asynchronous run, this wait would be for that run.
    if (!DependencyEngine::InRun()) MGE_RETURN_IF_ERROR(runtime_->engine().WaitForVariable(stream_->order));
    enqueuing = std::unique_lock(stream_->mutex);
    previous = stream_->last.lock();
  }
  MGE_RETURN_IF_ERROR(WithControl(control, [&]() -> absl::Status {
    std::vector<InputType> types(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      MGE_ASSIGN_OR_RETURN(types[i], InputTypeOf(i, inputs[i]));
    }
    const IoPlace created = DevicePlace(context);
    MGE_ASSIGN_OR_RETURN(const OutputPlaceList places, OutputPlaces(graph(), context, outputs, created));
    for (size_t i = 0; i < outputs.size() && created.device; ++i) {
      if (!outputs[i].tensor.defined() || (!places.empty() && places[i].device)) continue;
      return Fail(
          errors::kBadInput,
          fmt::format("output '{}' of an enqueued run is in plain host memory", graph().value(graph().outputs()[i]).name),
          {.fix = "provide a tensor on a device or in page-locked memory, or none"});
    }
    std::shared_ptr<const Plan> plan;
    if (!replicas_) {
      MGE_ASSIGN_OR_RETURN(plan, PlanForRun(*program_, types, control, places));
    }
    const bool waits =
        replicas_ || plan->continuation || plan->queues.empty() || plan->RunsAlone() || !plan->accesses.empty() ||
        std::any_of(plan->outputs.begin(), plan->outputs.end(), [](const BoundValue& v) { return !v.place.device; });
    if (!waits) {
      MGE_RETURN_IF_ERROR(CreateOutputs(*plan, outputs));
      MGE_ASSIGN_OR_RETURN(fence, RunFence::Start(runtime_, plan, {inputs.begin(), inputs.end()},
                                                  {outputs.begin(), outputs.end()}, control, after, previous));
      return absl::OkStatus();
    }
    absl::Status ended;
    if (previous) MGE_RETURN_IF_ERROR(WaitForRun(*previous, control, &ended));  // its failure is its own
    for (const std::shared_ptr<RunFence>& earlier : after) {
      MGE_RETURN_IF_ERROR(WaitForRun(*earlier, control, &ended));
      if (ended.ok()) continue;
      fence = RunFence::Ended(runtime_, ended);
      return absl::OkStatus();
    }
    MGE_RETURN_IF_ERROR(replicas_ ? RunReplicas(inputs, outputs, created, control)
                                  : RunInTurn(plan, inputs, outputs, control));
    fence = RunFence::Ended(runtime_);
    return absl::OkStatus();
  }));
  if (stream_) stream_->last = fence;
  return fence;
}

void Session::RunAsync(std::vector<HostValue> inputs, std::vector<HostValue> outputs, RunState& control,
                       std::function<void(absl::Status, std::vector<HostValue>)> done) {
  std::unique_lock<std::mutex> enqueuing;
  std::shared_ptr<RunFence> previous;  // on the stream
  if (stream_) {
    enqueuing = std::unique_lock(stream_->mutex);
    previous = stream_->last.lock();
  }
  auto run = [self = shared_from_this(), inputs = std::move(inputs), outputs = std::move(outputs), &control,
              previous = std::move(previous), done = std::move(done)]() mutable {
    absl::Status status = NoThrow([&] {
      absl::Status ended;
      if (previous) MGE_RETURN_IF_ERROR(WaitForRun(*previous, control, &ended));
      previous.reset();
      return self->Run(inputs, outputs, control);
    });
    inputs.clear();  // `done` may tell their owner that the run has ended
    done(std::move(status), std::move(outputs));
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
