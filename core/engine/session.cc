// SPDX-License-Identifier: Apache-2.0
#include "core/engine/session.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/base/nearest.h"
#include "core/plan/passes/veto.h"
#include "core/plugin/context.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::StatusOr<int> IndexOf(const Graph& graph, const std::vector<ValueId>& values, std::string_view what,
                            std::string_view name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    if (graph.value(values[i]).name == name) return static_cast<int>(i);
    names.push_back(graph.value(values[i]).name);
  }
  return Fail(
      errors::kBadInput, fmt::format("the model has no {} '{}'", what, name),
      {.what = fmt::format("its {}s are: {}", what, fmt::join(names, ", ")), .fix = DidYouMeanOr(Nearest(name, names), "")});
}

// Logs one warning about all parts of the model that ONNX forbids but MGE accepts.
void WarnOfLiberties(const onnx::Model& model, const Logger& logger) {
  constexpr size_t kNamed = 3;
  const std::vector<std::string>& all = model.info.liberties;
  if (all.empty()) return;
  const size_t named = std::min(all.size(), kNamed);
  logger.Warning("graph '{}' breaks rules of ONNX and is accepted: {}{}", model.graph.name,
                 fmt::join(all.begin(), all.begin() + static_cast<int64_t>(named), "; "),
                 named < all.size() ? fmt::format("; and {} more", all.size() - named) : "");
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
  auto context = std::make_shared<PlanContext>();
  MGE_ASSIGN_OR_RETURN(Resolution resolution, runtime->ResolveDevice(options.device, *settings));
  std::vector<DeviceUse> uses = resolution.devices;
  uses.insert(uses.end(), resolution.fallbacks.begin(), resolution.fallbacks.end());
  for (size_t i = 0; i < uses.size(); ++i) {
    Device* device = uses[i].device;
    if (!device->Is(MGE_DEVICE_HOST_ACCESSIBLE) && !device->queue_api()) {
      return Fail(errors::kDeviceUnusable, fmt::format("device '{}' cannot be used", device->name()),
                  {.what = "the host cannot reach its memory, and its backend has no queues that copy"});
    }
    if (std::find(context->devices.begin(), context->devices.end(), device) == context->devices.end()) {
      context->devices.push_back(device);
      context->owners.push_back(uses[i].owner);
    }
    if (i + 1 == resolution.devices.size()) context->split = context->devices.size();
  }
  context->shared_constants = std::make_shared<SharedConstants>();
  context->host = &runtime->devices().host();
  int asked = options.threads > 0 ? options.threads : resolution.devices.front().threads;
  context->threads = asked > 0 ? static_cast<uint32_t>(asked) : runtime->Threads();
  MGE_RETURN_IF_ERROR(ApplyStrategy(*settings, runtime->selection(), runtime->logger(), *context));
  context->red_zones = settings->Get<kDebugCheckMemory>();
  context->in_place = settings->Get<kPlanInplace>();
  context->skip = settings->Get<kPlannerSkip>();
  context->skip.insert(context->skip.end(), options.skip.begin(), options.skip.end());
  MGE_RETURN_IF_ERROR(ApplyVetoes(*context));
  context->cache = {settings->Get<kPlanCacheSize>(), settings->Get<kPlanCacheMemory>().count};
  context->logger = runtime->logger();
  context->on_plan = [recorder = runtime->selection().recorder](Plan& plan, const StopControl* stop) -> absl::Status {
    plan.attachment = std::make_unique<InstanceStore>(plan);
    if (recorder) MGE_RETURN_IF_ERROR(recorder->Flush(stop));
    std::vector<Device*> told;
    for (const Arena& arena : plan.arenas) {
      if (arena.memory_class != MGE_MEMORY_DEVICE || std::count(told.begin(), told.end(), arena.device)) continue;
      told.push_back(arena.device);
      MGE_RETURN_IF_ERROR(arena.device->Reserve(SummaryOf(plan, arena)));
    }
    return absl::OkStatus();
  };

  WarnOfLiberties(model, runtime->logger());
  std::shared_ptr<Session> session(new Session);
  session->runtime_ = std::move(runtime);
  session->info_ = std::move(model.info);
  session->default_timeout_s_ = settings->Get<kRunTimeout>().count();
  session->seed_ = static_cast<uint64_t>(settings->Get<kSeed>());
  MGE_ASSIGN_OR_RETURN(session->program_, Program::Create(std::move(model.graph), std::move(context)));
  session->output_types_ = OutputTypes(session->graph(), session->info_);
  return session;
}

Session::~Session() {
  if (!program_) return;
  const std::shared_ptr<const PlanContext> context = program_->shared_context();
  program_.reset();  // plans that others still hold keep their memory
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

absl::Status Session::RunSome(std::span<const HostValue> inputs, std::span<const int> places, std::span<HostValue> outputs,
                              RunState& control) {
  std::shared_ptr<Program> program = program_;
  bool all = static_cast<int>(places.size()) == output_count();
  for (size_t i = 0; all && i < places.size(); ++i) all = places[i] == static_cast<int>(i);
  if (!all) {
    MGE_ASSIGN_OR_RETURN(program, ProgramFor(places));
  }
  return RunProgram(*program, inputs, outputs, control);
}

absl::Status Session::RunProgram(Program& program, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                                 RunState& control) {
  control.pool = &runtime_->pool();
  control.width = threads();
  if (control.seed == 0) control.seed = seed_;
  // The default deadline is for this run only, so the caller's value is restored.
  absl::Cleanup restore = [&control, asked = control.deadline] { control.deadline = asked; };
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
  absl::InlinedVector<InputType, 8> types;
  for (const HostValue& v : inputs) types.push_back(TypeOfValue(v));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, PlanForRun(program, types, control));
  return RunPlan(plan, "", inputs, outputs, control);
}

void Session::RunAsync(std::vector<HostValue> inputs, std::vector<HostValue> outputs, RunState& control,
                       std::function<void(absl::Status, std::vector<HostValue>)> done) {
  auto run = [self = shared_from_this(), inputs = std::move(inputs), outputs = std::move(outputs), &control,
              done = std::move(done)]() mutable {
    absl::Status status = NoThrow([&] { return self->Run(inputs, outputs, control); });
    done(std::move(status), std::move(outputs));
    return absl::OkStatus();  // `done` has received the status
  };
  Operation operation = {.run = std::move(run), .device = device().name()};
  runtime_->engine().Push(std::move(operation));
}

}  // namespace mge
