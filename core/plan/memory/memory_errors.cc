// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/memory_errors.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the plan's need of `budget` if `over` is kOverBudget, else nullptr.
const MemoryNeed* NeedOf(const absl::Status& over, std::span<const MemoryNeed> needs, const Budget& budget) {
  if (ErrorId(over) != errors::kOverBudget.id) return nullptr;
  auto need = std::find_if(needs.begin(), needs.end(), [&](const MemoryNeed& n) { return &n.device->budget() == &budget; });
  return need == needs.end() ? nullptr : &*need;
}

absl::Status RunDoesNotFit(const Budget& budget, std::string what, std::string fix) {
  return Fail(errors::kOverBudget,
              fmt::format("a run of the model does not fit into the memory limit of device {} beside what is in use",
                          budget.owner()),
              {.what = std::move(what), .where = fmt::format("memory.limit of {}", budget.owner()), .fix = std::move(fix)});
}

}  // namespace

uint64_t PeakOf(const MemoryNeed& need) { return need.arena + need.constants + need.outputs; }

std::string PeakText(const MemoryNeed& need, const MemoryCapacity& capacity, uint64_t held) {
  return fmt::format("the planned peak is {} bytes (arena {}, constants {}, outputs {}); {}; the largest are {}",
                     PeakOf(need), need.arena, need.constants, need.outputs, CapacityText(capacity, held), need.largest);
}

std::string LeastLimit(Device& device, uint64_t least) {
  const Budget& budget = device.budget();
  if (!device.memory_api().own_pool) return fmt::format("the smallest limit that fits is {}={}", budget.owner(), least);
  return fmt::format("a limit that fits is above {}={}: the pool of backend {} may take more than is requested",
                     budget.owner(), std::max(least, budget.limit()), device.backend().name());
}

absl::Status NameConstants(absl::Status over, std::span<const MemoryNeed> needs, const Budget& budget) {
  const MemoryNeed* need = NeedOf(over, needs, budget);
  if (!need) return over;
  const MemoryCapacity capacity = {need->device, budget.limit(), true};
  return DoesNotFit(capacity, PeakText(*need, capacity, need->in_use),
                    fmt::format("a limit that fits is {}={}", budget.owner(), need->in_use + PeakOf(*need)));
}

absl::Status NamePlan(absl::Status over, const Plan& plan, const Budget& budget, uint64_t taken) {
  const MemoryNeed* need = NeedOf(over, plan.needs, budget);
  if (!need) return over;
  // Everything reclaimable has been released; what remains includes the plan's constants.
  const uint64_t charged = budget.in_use(), held = charged - std::min(taken, charged);
  return RunDoesNotFit(budget, PeakText(*need, {need->device, budget.limit(), true}, held),
                       fmt::format("{}; or run it on fewer threads at a time",
                                   LeastLimit(*need->device, held + need->arena + need->outputs)));
}

absl::Status NameDynamic(absl::Status over, const Plan& plan, const Budget& budget, uint64_t bytes) {
  const MemoryNeed* need = NeedOf(over, plan.needs, budget);
  if (!need) return over;
  const uint64_t held = budget.in_use();
  return RunDoesNotFit(
      budget,
      fmt::format("{} bytes were requested by a step whose memory is not planned, since its size is known "
                  "only during the run; {}",
                  bytes, PeakText(*need, {need->device, budget.limit(), true}, held)),
      fmt::format("the smallest limit for this step is {}={}; or use a smaller batch", budget.owner(), held + bytes));
}

}  // namespace mge
