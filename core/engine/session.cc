// SPDX-License-Identifier: Apache-2.0
#include "core/engine/session.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/engine/io_places.h"
#include "core/engine/session_context.h"
#include "core/ops/effects.h"
#include "core/plan/fallback_log.h"
#include "core/plan/memory/state_memory.h"
#include "core/plugin/context.h"
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
    if (services.fallbacks) services.fallbacks->LogStorage(fmt::format("the sparse tensor '{}' is made dense", name));
  }
  const std::vector<std::string>& all = model.info.deviations;
  if (all.empty()) return;
  const size_t named = std::min(all.size(), kNamed);
  services.logger.Warning("graph '{}' breaks rules of ONNX and is accepted: {}{}", model.graph.name,
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

// Runs a model with the states of the first replica.
class EvaluationOfReplicas final : public Replicas {
 public:
  EvaluationOfReplicas(std::shared_ptr<Replicas> trains, onnx::Model model)
      : trains_(std::move(trains)), model_(std::move(model)) {}

  absl::Status Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunState& control) override {
    MGE_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Current());
    return session->Run(inputs, outputs, control);
  }
  absl::StatusOr<Tensor> ReadState(const std::string& name) override { return trains_->ReadState(name); }
  absl::Status WriteState(const std::string& name, const Tensor& elements) override {
    return trains_->WriteState(name, elements);
  }
  absl::StatusOr<std::shared_ptr<const Plan>> PlanFor(std::span<const InputType> inputs, const StopControl* stop) override {
    MGE_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Current());
    return session->PlanFor(inputs, stop);
  }
  std::shared_ptr<const Plan> last_plan() const override {
    std::lock_guard lock(mutex_);
    return session_ ? session_->last_plan() : nullptr;
  }
  std::pair<int64_t, int64_t> PartOf(int64_t examples) const override { return {0, examples}; }  // each process runs all
  std::optional<CommunicationFacts> Communication() const override { return std::nullopt; }
  std::shared_ptr<Session> First() const override { return trains_->First(); }

 private:
  // Returns a session on the states of what is now the first replica.
  absl::StatusOr<std::shared_ptr<Session>> Current() {
    const std::shared_ptr<Session> first = trains_->First();
    std::lock_guard lock(mutex_);
    if (first != first_) {
      MGE_ASSIGN_OR_RETURN(session_, Session::Evaluating(*first, model_));
      first_ = first;
    }
    return session_;
  }

  const std::shared_ptr<Replicas> trains_;
  const onnx::Model model_;
  mutable std::mutex mutex_;
  std::shared_ptr<Session> first_, session_;  // guarded by mutex_
};

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
  std::shared_ptr<const Snapshot> settings = options.snapshot;
  if (!settings) {
    MGE_ASSIGN_OR_RETURN(settings, runtime->registry().SnapshotWith(options.settings));
  }
  if (!options.outputs.empty()) MGE_RETURN_IF_ERROR(SelectOutputs(options.outputs, model));
  MGE_ASSIGN_OR_RETURN(const Resolution found, runtime->ResolveDevice(options.device, *settings));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const PlanContext> context, MakePlanContext(*runtime, options, settings, found));
  runtime->WarnOfNeeds(*settings, NeedsOf::kSession);
  WarnOfModel(model, *context->services);
  std::shared_ptr<Session> session(new Session);
  session->runtime_ = std::move(runtime);
  session->info_ = std::move(model.info);
  session->default_timeout_s_ = settings->Get<kRunTimeout>().count();
  session->seed_ = static_cast<uint64_t>(settings->Get<kSeed>());
  session->trains_ = options.training;
  MarkStates(model.graph);
  MGE_ASSIGN_OR_RETURN(session->program_, Program::Create(std::move(model.graph), std::move(context), {}, options.stop));
  const DeviceUse& first = found.devices.front();
  session->inline_ = first.synchronous;
  if (first.stream != kNoStream) session->stream_ = session->runtime_->streams().Get(first.device->name(), first.stream);
  if (options.outputs_on_device) session->created_ = DevicePlace(session->program_->context());
  MGE_ASSIGN_OR_RETURN(session->pinned_, PinnedDevice(session->runtime_->devices(), first.pinned));
  if (session->pinned_.device) session->created_ = {session->pinned_.device, true};
  session->output_types_ = OutputTypes(session->graph(), session->info_);
  return session;
}

absl::StatusOr<std::shared_ptr<Session>> Session::Evaluating(const Session& trains, onnx::Model model) {
  std::shared_ptr<Session> session(new Session);
  if (trains.replicas_) session->RunOn(std::make_shared<EvaluationOfReplicas>(trains.replicas_, model));
  session->runtime_ = trains.runtime_;
  session->info_ = std::move(model.info);
  session->default_timeout_s_ = trains.default_timeout_s_;
  session->seed_ = trains.seed_.load();
  session->evaluates_ = true;
  session->turn_ = trains.turn_;
  session->inline_ = trains.inline_;
  session->stream_ = trains.stream_;
  session->created_ = trains.created_;
  session->pinned_ = trains.pinned_;
  std::unordered_map<std::string_view, const Value*> states;
  for (ValueId v = 0; v < trains.graph().value_count(); ++v) {
    const Value& value = trains.graph().value(v);
    if (!value.dead && value.role == Role::kState) states.emplace(value.name, &value);
  }
  for (ValueId v = 0; v < model.graph.value_count(); ++v) {
    Value& value = model.graph.value(v);
    const auto state = value.dead || value.role != Role::kConstant ? states.end() : states.find(value.name);
    if (state == states.end()) continue;
    const TensorType& type = state->second->type;
    if (value.type.dtype == type.dtype && value.type.dims == type.dims) value.role = Role::kState;
  }
  MGE_ASSIGN_OR_RETURN(session->program_, Program::Create(std::move(model.graph), trains.program_->shared_context()));
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

absl::StatusOr<InputType> Session::InputTypeOf(size_t i, const HostValue& input) const {
  return TypeWithPlace(graph(), program_->context(), i, input);
}

}  // namespace mge
