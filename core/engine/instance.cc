// SPDX-License-Identifier: Apache-2.0
#include "core/engine/instance.h"

#include <cstring>

#include "core/base/errors.h"
#include "core/plan/program.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {
namespace {

// What mge_run.pool points to.
struct RunPool {
  ComputePool* pool;
  uint32_t width;
};

void ParallelFor(void* self, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
  auto& p = *static_cast<RunPool*>(self);
  p.pool->ParallelFor(chunks, p.width, body, context);
}

// A kernel that refuses the data it was given (an index outside of its tensor) is the data's fault.
absl::Status StatusOfKernel(mge_code code, const mge_error& error) {
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

}  // namespace

absl::Status RunControl::CheckStop() const {
  if (cancel.load(std::memory_order_relaxed)) return Fail(errors::kCancelled, "the run was cancelled");
  if (deadline && std::chrono::steady_clock::now() > *deadline) {
    return Fail(errors::kTimeout, "the run took longer than its time limit",
                {.fix = "allow more time, or look for the slow part with `mge plan MODEL --why`"});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Instance>> Instance::Create(const Plan& plan) {
  std::unique_ptr<Instance> instance(new Instance(plan));
  instance->bases_.assign(plan.base_count, nullptr);
  if (plan.arena_bytes > 0) {
    MGE_ASSIGN_OR_RETURN(Pool * pool, plan.device->PoolOf());
    MGE_ASSIGN_OR_RETURN(instance->arena_, pool->Acquire(static_cast<uint64_t>(plan.arena_bytes)));
    instance->pool_ = pool;
    instance->bases_[kArenaBase] = instance->arena_.address;
  }
  for (const ConstantBase& c : plan.constants) instance->bases_[c.base] = const_cast<void*>(c.tensor.data());
  instance->late_.resize(plan.late_count);
  for (size_t i = 0; i < plan.states.size(); ++i) {
    void* state = nullptr;
    mge_error error;
    mge_code code = plan.state_apis[i]->state_create(plan.states[i], &state, &error);
    if (code != MGE_OK) return StatusOfBackend(code, error, "creating the state of a kernel");
    instance->states_.push_back(state);
  }
  return instance;
}

Instance::~Instance() {
  for (size_t i = 0; i < states_.size(); ++i) plan_.state_apis[i]->state_destroy(plan_.states[i], states_[i]);
  if (pool_) pool_->Release(arena_);
}

HostAllocator& Instance::allocator() { return plan_.device->host_allocator(); }

uint64_t Instance::NextSeed() { return control_->seed * 0x9e3779b97f4a7c15u + ++random_steps_; }

absl::Status Instance::Run(std::span<const HostValue> inputs, std::span<HostValue> outputs, RunControl& control) {
  control_ = &control;
  random_steps_ = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Location& at = plan_.inputs[i].location;
    if (at.kind == Location::Kind::kLate) {
      late_[at.index] = inputs[i];
    } else {
      bases_[at.slot.base] = const_cast<void*>(inputs[i].tensor.data());
    }
  }
  for (const LateConstant& c : plan_.late_constants) late_[c.index].tensor = c.tensor;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BoundValue& bound = plan_.outputs[i];
    if (bound.location.kind != Location::Kind::kSlot) continue;
    Tensor& tensor = outputs[i].tensor;
    if (!tensor.defined()) {
      MGE_ASSIGN_OR_RETURN(tensor, Tensor::Create(bound.type.dtype, bound.type.dims, allocator()));
    } else if (tensor.dtype() != bound.type.dtype || tensor.shape() != bound.type.dims) {
      return Fail(errors::kBadInput, fmt::format("the memory for output '{}' does not fit", bound.name),
                  {.what = fmt::format("expected {}, got {}{}", bound.type.ToString(), DTypeName(tensor.dtype()),
                                       ShapeText(tensor.shape()))});
    }
    bases_[bound.location.slot.base] = tensor.mutable_data();
  }
  absl::Status status = RunSteps();
  if (status.ok()) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Location& at = plan_.outputs[i].location;
      if (at.kind == Location::Kind::kLate) outputs[i] = late_[at.index];
    }
    if (plan_.continuation) status = RunContinuation(outputs);
  }
  for (HostValue& v : late_) v = HostValue();
  return status;
}

absl::Status Instance::RunSteps() {
  RunPool pool = {control_->pool, control_->width};
  mge_error error;
  HostRun host_run = {};
  mge_run& run = host_run.run;
  run.struct_size = sizeof(mge_run);
  run.width = control_->width;
  run.bases = bases_.data();
  run.states = states_.data();
  run.cancel = reinterpret_cast<const int32_t*>(&control_->cancel);
  run.error = &error;
  run.pool = &pool;
  run.parallel_for = ParallelFor;
  host_run.environment = this;
  bool timed = control_->deadline.has_value() || control_->on_step;
  for (const Segment& segment : plan_.segments) {
    run.host = segment.device->host();
    const Step* step = plan_.steps.data() + segment.first_step;
    for (const Step* end = step + segment.step_count; step != end; ++step) {
      if (control_->cancel.load(std::memory_order_relaxed)) return control_->CheckStop();
      std::chrono::steady_clock::time_point begin;
      if (timed) {
        MGE_RETURN_IF_ERROR(control_->CheckStop());
        begin = std::chrono::steady_clock::now();
      }
      mge_code code = step->fn(step->args, &run);
      if (code != MGE_OK) {
        if (error_.ok()) error_ = StatusOfKernel(code, error);
        return StepFailed(*step);
      }
      if (timed && control_->on_step) {
        auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
        control_->on_step(control_->on_step_self, plan_, static_cast<int>(step - plan_.steps.data()), ns);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Instance::StepFailed(const Step& step) {
  absl::Status status = std::exchange(error_, absl::OkStatus());
  const Unit& unit = plan_.units[step.unit];
  return PartsOf(status).where.empty() ? AddWhere(std::move(status), UnitPlace(unit)) : status;
}

HostValue Instance::ValueAt(const BoundValue& bound) {
  if (bound.location.kind == Location::Kind::kLate) return late_[bound.location.index];
  HostValue v;
  const mge_slot& slot = bound.location.slot;
  v.tensor = Tensor::View(bound.type.dtype, bound.type.dims, static_cast<char*>(bases_[slot.base]) + slot.offset, nullptr);
  return v;
}

absl::Status Instance::RunContinuation(std::span<HostValue> outputs) {
  std::vector<HostValue> inputs;
  for (const BoundValue& bound : plan_.continuation->inputs) inputs.push_back(ValueAt(bound));
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, RunProgram(*plan_.continuation->program, std::move(inputs)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Location& at = plan_.outputs[i].location;
    if (at.kind == Location::Kind::kContinuation) outputs[i] = std::move(results[at.index]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostValue>> Instance::RunProgram(Program& program, std::vector<HostValue> inputs) {
  std::vector<InputType> types;
  for (const HostValue& v : inputs) types.push_back(TypeOfValue(v));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, program.PlanFor(types));
  std::vector<HostValue> outputs(plan->outputs.size());
  MGE_RETURN_IF_ERROR(RunPlan(*plan, inputs, outputs, *control_));
  return outputs;
}

InstanceStore::~InstanceStore() {
  for (auto& slot : kept_) delete slot.load();
}

absl::StatusOr<std::unique_ptr<Instance>> InstanceStore::Take() {
  for (auto& slot : kept_) {
    if (!slot.load(std::memory_order_relaxed)) continue;
    if (Instance* instance = slot.exchange(nullptr, std::memory_order_acq_rel)) return std::unique_ptr<Instance>(instance);
  }
  return Instance::Create(plan_);
}

void InstanceStore::Give(std::unique_ptr<Instance> instance) {
  for (auto& slot : kept_) {
    Instance* empty = nullptr;
    if (slot.compare_exchange_strong(empty, instance.get(), std::memory_order_acq_rel)) {
      instance.release();
      return;
    }
  }
}

absl::Status RunPlan(const Plan& plan, std::span<const HostValue> inputs, std::span<HostValue> outputs,
                     RunControl& control) {
  InstanceStore& store = InstanceStore::Of(plan);
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Instance> instance, store.Take());
  absl::Status status = instance->Run(inputs, outputs, control);
  store.Give(std::move(instance));
  return status;
}

}  // namespace mge
