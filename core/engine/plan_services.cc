// SPDX-License-Identifier: Apache-2.0
#include "core/engine/plan_services.h"

#include <algorithm>
#include <vector>

#include "core/engine/instance.h"
#include "core/engine/runtime.h"
#include "core/engine/static_memory.h"
#include "core/plan/fallback_log.h"
#include "core/plan/program.h"

namespace mge {
namespace {

// Warns if debug.watch_value names no value of a model's plan.
void WarnIfUnwatched(const Plan& plan, const PlanContext& context) {
  const int64_t watched = context.settings->Get<kDebugWatchValue>();
  if (watched < 0 || !plan.part.empty()) return;
  const bool known = std::any_of(plan.values.begin(), plan.values.end(),
                                 [&](const RecordedValue& v) { return v.id == watched && v.bytes > 0; });
  if (known) return;
  context.services->logger.Warning(
      "debug.watch_value is {}, but no step of the plan writes or reads memory of that value; `mge plan --why` shows the "
      "ids of values",
      watched);
}

// Gives a new plan its store of instances, and tells the devices of its arenas.
absl::Status Equip(Runtime& runtime, const Program& program, Plan& plan, const StopControl* stop) {
  const PlanContext& context = program.context();
  ArenaUse use = ArenaUseOf(context.settings->Get<kMemoryStaticPolicy>(), runtime.shared_arenas(), plan, program);
  plan.attachment = std::make_unique<InstanceStore>(plan, runtime, context.settings, std::move(use));
  WarnIfUnwatched(plan, context);
  if (const auto& recorder = context.services->selection.recorder) MGE_RETURN_IF_ERROR(recorder->Flush(stop));
  if (!plan.new_arenas) return absl::OkStatus();
  std::vector<Device*> told;
  for (const Arena& arena : plan.arenas) {
    if (arena.memory_class != MGE_MEMORY_DEVICE || std::count(told.begin(), told.end(), arena.device)) continue;
    told.push_back(arena.device);
    MGE_RETURN_IF_ERROR(arena.device->Reserve(SummaryOf(plan, arena)));
  }
  return absl::OkStatus();
}

}  // namespace

std::shared_ptr<const PlanServices> MakePlanServices(Runtime& runtime, SelectionTools selection) {
  const std::shared_ptr<const Snapshot> settings = runtime.registry().snapshot();
  auto out = std::make_shared<PlanServices>();
  out->host = &runtime.devices().host();
  out->logger = runtime.logger();
  out->selection = std::move(selection);
  if (settings->Get<kLogStorageFallback>()) {
    const bool asked = settings->IsSet<kLogStorageFallback>();
    out->fallbacks = std::make_shared<FallbackLog>(runtime.logger(), asked ? LogLevel::kWarning : LogLevel::kInfo);
  }
  out->shared_constants = std::make_shared<SharedConstants>();
  out->parallel_for = [&runtime](uint32_t width, uint64_t count, const std::function<void(uint64_t)>& body) {
    auto call = [](void* self, uint64_t i) { (*static_cast<const std::function<void(uint64_t)>*>(self))(i); };
    runtime.pool().ParallelFor(count, width, call, const_cast<std::function<void(uint64_t)>*>(&body));
  };
  out->on_plan = [&runtime](Plan& plan, const Program& program, const StopControl* stop) {
    return Equip(runtime, program, plan, stop);
  };
  return out;
}

}  // namespace mge
