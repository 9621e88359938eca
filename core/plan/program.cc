// SPDX-License-Identifier: Apache-2.0
#include "core/plan/program.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <unordered_map>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/base/lazy_bytes.h"
#include "core/kernel/operator_query.h"
#include "core/ops/declared_type.h"
#include "core/ops/op.h"
#include "core/plan/input_text.h"
#include "core/plan/passes/function_kernels.h"
#include "core/plan/passes/pass.h"
#include "core/plan/planner.h"
#include "core/plan/ranges/range_plans.h"
#include "fmt/format.h"

namespace mge {

namespace {

// Returns the name of a device that has no kernels for an ai.onnx operator, or "" if there is none.
std::string DeviceWithoutKernels(const PlanContext& context, std::string_view op) {
  const OpDef* def = FindOp("", op);
  MGE_CHECK(def);
  const OperatorShape shape = {"", op, def->since, static_cast<int>(def->inputs.size()),
                               static_cast<int>(def->outputs.size())};
  for (Device* device : context.devices) {
    if (device == context.services->host || !HasOperator(*device, shape)) return std::string(device->name());
  }
  return {};
}

PlanCacheLimits CacheLimits(const Snapshot& settings) {
  return {settings.Get<kPlanCacheCount>(), settings.Get<kPlanCacheBytes>().count};
}

// Returns the error of a constant that could not be read while somebody needed its bytes.
absl::Status CheckConstants(const Graph& graph) {
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (const LazyBytes* lazy = graph.value(v).constant.lazy()) MGE_RETURN_IF_ERROR(lazy->status());
  }
  return absl::OkStatus();
}

}  // namespace

Program::Program(Graph graph, std::shared_ptr<const PlanContext> context, std::string part)
    : graph_(std::move(graph)),
      context_(std::move(context)),
      part_(std::move(part)),
      cache_(CacheLimits(*context_->settings)),
      ranges_(part_.empty() ? RangePlans::For(*context_) : nullptr) {}

absl::StatusOr<std::shared_ptr<Program>> Program::Create(Graph graph, std::shared_ptr<const PlanContext> context,
                                                         std::string part, const StopControl* stop) {
  MGE_RETURN_IF_ERROR(CheckSkippedNames(context->skip.names));
  std::shared_ptr<Program> program(new Program(std::move(graph), std::move(context), std::move(part)));
  PassContext passes = {.allocator = &program->context_->devices.front()->host_allocator(),
                        .skip = program->context_->skip.names,
                        .stop = stop};
  if (program->part_.empty()) {
    passes.progress = program->context_->progress.get();
  } else {
    passes.fold_bytes = kFoldBytesOfBody;
  }
  std::map<std::string, std::string, std::less<>> lacking;  // operator -> the device without kernels, or ""
  passes.has_kernels = [&](std::string_view op) {
    auto known = lacking.find(op);
    if (known == lacking.end()) {
      known = lacking.emplace(op, DeviceWithoutKernels(*program->context_, op)).first;
      if (!known->second.empty()) {
        program->pass_log_.push_back(
            fmt::format("rewrites to {}: not applied, because {} has no kernels for it", op, known->second));
      }
    }
    return known->second.empty();
  };
  FunctionKernels kernels(*program->context_);
  passes.keeps_function = [&](const Graph& g, NodeId id) { return kernels.Has(g, id); };
  const ConstantReader before(program->graph_);
  MGE_RETURN_IF_ERROR(RunPasses(program->graph_, passes, &program->pass_log_));
  const ConstantReader after(program->graph_);  // unpins the constants that passes have made
  MGE_RETURN_IF_ERROR(CheckConstants(program->graph_));
  return program;
}

std::shared_ptr<Program> Program::Unfit(Graph graph, std::shared_ptr<const PlanContext> context, absl::Status fault) {
  std::shared_ptr<Program> program(new Program(std::move(graph), std::move(context)));
  program->fault_ = std::move(fault);
  return program;
}

bool Program::HasFixedShapes() const {
  auto fixed = [&](ValueId v) { return graph_.value(v).kind == ValueKind::kTensor && graph_.value(v).type.IsStatic(); };
  return part_.empty() && std::all_of(graph_.inputs().begin(), graph_.inputs().end(), fixed);
}

absl::Status Program::CheckInputs(std::span<const InputType> inputs) const {
  MGE_CHECK(inputs.size() == graph_.inputs().size());
  std::unordered_map<std::string_view, int64_t> symbols;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& declared = graph_.value(graph_.inputs()[i]);
    const InputType& got = inputs[i];
    if (declared.role == Role::kCapture || declared.kind != ValueKind::kTensor || got.kind != ValueKind::kTensor) {
      if (declared.kind != got.kind && declared.role == Role::kInput && declared.type.dtype != DType::kUndefined) {
        return InputMismatch(declared, "expected another kind of value (tensor, sequence or optional)");
      }
      continue;
    }
    const TensorType& type = declared.type;
    MGE_RETURN_IF_ERROR(RequireDeclaredType(declared, got.dtype, got.shape));
    if (!type.has_rank) continue;
    for (size_t d = 0; d < got.shape.size(); ++d) {
      if (type.dims[d] >= 0 || d >= type.symbols.size() || type.symbols[d].empty()) continue;
      const auto known = symbols.try_emplace(type.symbols[d], got.shape[d]).first;
      if (known->second != got.shape[d]) {
        return InputMismatch(declared, fmt::format("dimension {} is {}, but '{}' is already {}", d, got.shape[d],
                                                   known->first, known->second));
      }
    }
  }
  return absl::OkStatus();
}

std::shared_ptr<const Plan> Program::recent() const {
  std::lock_guard lock(mutex_);
  return cache_.recent();
}

std::vector<std::shared_ptr<const Plan>> Program::plans() const {
  std::lock_guard lock(mutex_);
  return cache_.plans();
}

int64_t Program::IdleBytes() const {
  std::lock_guard lock(mutex_);
  return cache_.IdleBytes();
}

bool Program::Forget() {
  PlanCache::Evicted evicted;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  return cache_.EvictOldest(evicted) || (ranges_ && ranges_->Forget());
}

void Program::WarnOfPlanning(std::span<const InputType> inputs) {
  constexpr int64_t kAgain = 3, kMany = 50;
  auto shapes = [&] { return InputText(graph_, [&](size_t i) { return ShapeText(inputs[i].shape); }); };
  const std::string place = part_.empty() ? "" : part_ + ": ";
  const double ms = 1e3 * planning_s_ / static_cast<double>(std::max<int64_t>(cache_.made(), 1));
  if (cache_.made_again() >= kAgain && !warned_of_eviction_) {
    warned_of_eviction_ = true;
    const PlanCacheLimits limits = CacheLimits(*context_->settings);
    auto text = [](int64_t limit) { return limit == INT64_MAX ? std::string("unlimited") : std::to_string(limit); };
    context_->services->logger.Warning(
        "{}plans are created repeatedly: {} of {} were created again after an eviction, the last for {}, in {:.1f} ms "
        "each. The limits are plan.cache_count = {} and plan.cache_bytes = {}: raise them, or call the model with fewer "
        "shapes",
        place, cache_.made_again(), cache_.made(), shapes(), ms, text(limits.plans), text(limits.bytes));
  }
  const int64_t fresh = cache_.made() - cache_.made_again() - derived_, calls = calls_ + cache_.recent_finds();
  if (fresh >= kMany && 2 * fresh > calls && !warned_of_shapes_) {
    warned_of_shapes_ = true;
    context_->services->logger.Warning(
        "{}{} of {} runs had to create a plan first, since their shapes were new (last: {}), in {:.1f} ms each{}", place,
        fresh, calls, shapes(), ms, part_.empty() ? ": pad inputs to a few sizes to avoid that" : "");
  }
}

absl::StatusOr<std::shared_ptr<const Plan>> Program::Make(std::span<const InputType> inputs,
                                                          std::span<const IoPlace> outputs, const StopControl* stop) {
  MGE_RETURN_IF_ERROR(fault_);
  MGE_RETURN_IF_ERROR(CheckInputs(inputs));
  FirstShapes* first =
      context_->settings->Get<kPlanStaticInputShape>() && part_.empty() ? &context_->caches->first_shapes : nullptr;
  if (first) MGE_RETURN_IF_ERROR(first->Check(graph_, inputs));
  const ConstantReader reader(graph_);
  const ReclaimMemory reclaim = [this] { return Forget(); };
  std::shared_ptr<Plan> plan;
  std::string why_own;
  if (ranges_) {
    MGE_ASSIGN_OR_RETURN(plan, ranges_->PlanFor(graph_, inputs, outputs, context_, stop, reclaim, &why_own));
  }
  if (!plan) {
    MGE_ASSIGN_OR_RETURN(plan, BuildPlan(graph_, inputs, outputs, context_, stop, reclaim));
    plan->report.why_own = std::move(why_own);
  }
  MGE_RETURN_IF_ERROR(CheckConstants(graph_));
  if (first) MGE_RETURN_IF_ERROR(first->Keep(graph_, inputs));
  if (plan->report.ranges.empty()) {
    std::vector<std::string> log = pass_log_;
    log.insert(log.end(), plan->report.pass_log.begin(), plan->report.pass_log.end());
    log.insert(log.end(), context_->skip.vetoes.begin(), context_->skip.vetoes.end());
    plan->report.pass_log = std::move(log);
  }
  plan->part = part_;
  if (context_->services->on_plan) MGE_RETURN_IF_ERROR(context_->services->on_plan(*plan, *this, stop));
  struct Held {  // a plan may outlive its session, and gives memory back to its devices
    std::vector<std::shared_ptr<Device>> owners;
    std::shared_ptr<Plan> plan;
  };
  auto held = std::make_shared<Held>(Held{context_->owners, std::move(plan)});
  const Plan* made = held->plan.get();
  return std::shared_ptr<const Plan>(std::move(held), made);
}

absl::StatusOr<std::shared_ptr<const Plan>> Program::PlanFor(std::span<const InputType> inputs, const StopControl* stop,
                                                             std::span<const IoPlace> outputs) {
  PlanCache::Evicted evicted;  // destroyed after the lock is released
  std::unique_lock lock(mutex_);
  ++calls_;
  std::shared_ptr<const Plan> known;
  for (;; made_.wait_for(lock, kStopSlice)) {
    known = cache_.Find(inputs, evicted, outputs);
    if (known && (making_ || !ranges_ || !ranges_->CountRun(*known))) return known;
    if (stop) MGE_RETURN_IF_ERROR(stop->CheckStop());
    if (!making_) break;
  }
  making_ = true;
  lock.unlock();
  absl::Cleanup done = [&] {
    if (!lock.owns_lock()) lock.lock();
    making_ = false;
    made_.notify_all();
    lock.unlock();
  };
  const auto begin = std::chrono::steady_clock::now();
  if (known) ranges_->SkipNext();
  absl::StatusOr<std::shared_ptr<const Plan>> made = Make(inputs, outputs, stop);
  if (!made.ok() && (!known || !CheckStop(stop).ok())) return made.status();
  const std::shared_ptr<const Plan> plan = made.ok() ? *std::move(made) : known;
  lock.lock();
  derived_ += !plan->report.ranges.empty();
  planning_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (plan != known) cache_.Add(inputs, plan, evicted, outputs);
  WarnOfPlanning(inputs);
  return plan;
}

}  // namespace mge
