// SPDX-License-Identifier: Apache-2.0
#include "core/plan/program.h"

#include <algorithm>
#include <iterator>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/plan/pass.h"
#include "fmt/format.h"

namespace mge {

Device& HostStepDevice(const PlanContext& context) {
  for (Device* device : context.devices) {
    if (!HasQueues(*device)) return *device;
  }
  MGE_CHECK(context.host);
  return *context.host;
}

int32_t SelectModeOn(const PlanContext& context, const Device& device) {
  const mge_strategy_api* own = device.strategy_api();
  return context.select_mode.value_or(own ? own->mode : MGE_SELECT_HEURISTIC);
}

mge_constraints ConstraintsOn(const PlanContext& context, const Device& device) {
  const bool repeats = SelectModeOn(context, device) == MGE_SELECT_REPRODUCIBLE;
  const uint64_t require = context.require | (repeats ? MGE_KERNEL_DETERMINISTIC : 0);
  return {sizeof(mge_constraints), 0, require, context.forbid, context.workspace_limit};
}

InputType TypeOfValue(const HostValue& value) {
  InputType type;
  type.kind = value.kind;
  if (value.kind == ValueKind::kTensor) {
    type.dtype = value.tensor.dtype();
    type.shape = value.tensor.shape();
  } else if (!value.sequence.empty()) {
    type.dtype = value.sequence.front().dtype();
  } else {
    type.dtype = value.tensor.dtype();
  }
  return type;
}

Program::Program(Graph graph, std::shared_ptr<const PlanContext> context)
    : graph_(std::move(graph)), context_(std::move(context)) {}

absl::StatusOr<std::shared_ptr<Program>> Program::Create(Graph graph, std::shared_ptr<const PlanContext> context) {
  MGE_RETURN_IF_ERROR(CheckSkippedNames(context->skip));
  std::shared_ptr<Program> program(new Program(std::move(graph), std::move(context)));
  PassContext passes = {.allocator = &program->context_->devices.front()->host_allocator(),
                        .skip = program->context_->skip};
  MGE_RETURN_IF_ERROR(RunPasses(program->graph_, passes, &program->pass_log_));
  return program;
}

std::shared_ptr<Program> Program::Unfit(Graph graph, std::shared_ptr<const PlanContext> context, absl::Status fault) {
  std::shared_ptr<Program> program(new Program(std::move(graph), std::move(context)));
  program->fault_ = std::move(fault);
  return program;
}

absl::Status Program::CheckInputs(std::span<const InputType> inputs) const {
  MGE_CHECK(inputs.size() == graph_.inputs().size());
  std::vector<std::pair<std::string_view, int64_t>> symbols;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& declared = graph_.value(graph_.inputs()[i]);
    const InputType& got = inputs[i];
    auto fail = [&](std::string what) {
      return Fail(errors::kBadInput, fmt::format("input '{}' does not fit the model", declared.name),
                  {.what = std::move(what), .fix = "`mge inspect MODEL` lists the inputs"});
    };
    if (declared.role == Role::kCapture || declared.kind != ValueKind::kTensor || got.kind != ValueKind::kTensor) {
      if (declared.kind != got.kind && declared.role == Role::kInput && declared.type.dtype != DType::kUndefined) {
        return fail("expected another kind of value (tensor, sequence or optional)");
      }
      continue;
    }
    const TensorType& type = declared.type;
    auto got_text = [&] { return fmt::format("{}{}", DTypeName(got.dtype), ShapeText(got.shape)); };
    if (type.dtype != DType::kUndefined && type.dtype != got.dtype) {
      return fail(fmt::format("expected {}, got {}", type.ToString(), got_text()));
    }
    if (!type.has_rank) continue;
    if (type.dims.size() != got.shape.size()) {
      return fail(fmt::format("expected {}, got {}: rank {} instead of {}", type.ToString(), got_text(), got.shape.size(),
                              type.dims.size()));
    }
    for (size_t d = 0; d < got.shape.size(); ++d) {
      if (type.dims[d] >= 0 && type.dims[d] != got.shape[d]) {
        return fail(fmt::format("expected {}, got {}: dimension {} is {} instead of {}", type.ToString(), got_text(), d,
                                got.shape[d], type.dims[d]));
      }
      if (type.dims[d] >= 0 || d >= type.symbols.size() || type.symbols[d].empty()) continue;
      auto known = std::find_if(symbols.begin(), symbols.end(), [&](auto& s) { return s.first == type.symbols[d]; });
      if (known == symbols.end()) {
        symbols.push_back({type.symbols[d], got.shape[d]});
      } else if (known->second != got.shape[d]) {
        return fail(fmt::format("dimension {} is {}, but '{}' is already {}", d, got.shape[d], known->first, known->second));
      }
    }
  }
  return absl::OkStatus();
}

std::shared_ptr<const Plan> Program::recent() const {
  std::lock_guard lock(mutex_);
  return entries_.empty() ? nullptr : entries_.front()->plan;
}

std::vector<std::shared_ptr<const Plan>> Program::plans() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Plan>> out;
  for (const auto& entry : entries_) out.push_back(entry->plan);
  return out;
}

std::shared_ptr<const Plan> Program::Find(std::span<const InputType> inputs) {
  auto at = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->Fits(inputs); });
  if (at == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at);
  return entries_.front()->plan;
}

bool Program::Forget() {
  std::shared_ptr<const Entry> oldest;  // goes when the lock is no longer held
  std::lock_guard lock(mutex_);
  for (auto at = entries_.end(); at != entries_.begin();) {
    const Plan& plan = *(*--at)->plan;
    if (plan.packed_bytes + plan.uploaded_bytes == 0 || (*at)->plan.use_count() > 1) continue;
    oldest = *at;
    entries_.erase(at);
    return true;
  }
  return false;
}

absl::StatusOr<std::shared_ptr<const Plan>> Program::Make(std::span<const InputType> inputs, const StopControl* stop) {
  MGE_RETURN_IF_ERROR(fault_);
  MGE_RETURN_IF_ERROR(CheckInputs(inputs));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan, BuildPlan(graph_, inputs, context_, stop, [this] { return Forget(); }));
  plan->pass_log.insert(plan->pass_log.begin(), pass_log_.begin(), pass_log_.end());
  if (context_->on_plan) MGE_RETURN_IF_ERROR(context_->on_plan(*plan, stop));
  return plan;
}

absl::StatusOr<std::shared_ptr<const Plan>> Program::PlanFor(std::span<const InputType> inputs,
                                                             const StopControl* stop) {
  std::unique_lock lock(mutex_);
  for (;; made_.wait_for(lock, kStopSlice)) {
    if (std::shared_ptr<const Plan> known = Find(inputs)) return known;
    if (stop) MGE_RETURN_IF_ERROR(stop->CheckStop());
    if (!making_) break;
  }
  making_ = true;
  lock.unlock();
  absl::Cleanup done = [&] {
    if (!lock.owns_lock()) lock.lock();
    making_ = false;
    made_.notify_all();
  };
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Make(inputs, stop));
  auto entry = std::make_shared<const Entry>(Entry{{inputs.begin(), inputs.end()}, plan});
  std::list<std::shared_ptr<const Entry>> dropped;  // go when the lock is no longer held
  const auto size = static_cast<size_t>(std::max(context_->cache_size, 1));
  lock.lock();
  entries_.push_front(std::move(entry));
  while (entries_.size() > size) dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  lock.unlock();
  return plan;
}

}  // namespace mge
