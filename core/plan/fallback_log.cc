// SPDX-License-Identifier: Apache-2.0
#include "core/plan/fallback_log.h"

#include <algorithm>
#include <utility>

#include "core/plan/plan_context.h"
#include "fmt/format.h"

namespace mge {
namespace {

bool IsFirst(const PlanContext& context, const std::string& device) {
  const auto end = context.devices.begin() + static_cast<std::ptrdiff_t>(context.split);
  return std::any_of(context.devices.begin(), end, [&](const Device* d) { return d->name() == device; });
}

}  // namespace

void FallbackLog::Log(LogLevel level, std::string message) {
  std::lock_guard lock(mutex_);
  const auto [at, fresh] = said_.insert(std::move(message));
  if (fresh) logger_.Log(level, "fallback: {}", *at);
}

void FallbackLog::Log(std::span<const Unit> units, const PlanContext& context) {
  if (!logger_.On(operators_)) return;
  for (const Unit& unit : units) {
    const std::string ops = fmt::format("{}", fmt::join(unit.ops, "+"));
    if (unit.kind == Unit::Kind::kReference) {
      Log(operators_, fmt::format("operator {} is computed by the reference evaluator, because {}", ops, unit.reason));
    } else if (unit.kind == Unit::Kind::kKernel && !IsFirst(context, unit.device)) {
      Log(operators_,
          fmt::format("operator {} runs on {} in place of {}", ops, unit.device, context.devices.front()->name()));
    } else if (unit.kind == Unit::Kind::kReorder) {
      Log(operators_, fmt::format("the layout of a tensor is converted on {}: {} -> {}", unit.device,
                                  fmt::join(unit.inputs, ", "), fmt::join(unit.outputs, ", ")));
    }
  }
}

}  // namespace mge
