// SPDX-License-Identifier: Apache-2.0
#include "core/engine/step_checks.h"

#include <utility>

#include "core/plan/collective_step.h"
#include "core/plan/value_records.h"

namespace mge {

StepChecks::StepChecks(const Plan& plan, const Snapshot& settings, const Logger& logger, std::span<void* const> bases,
                       std::span<const HostValue> dynamic)
    : plan_(plan),
      logger_(logger),
      logs_collectives_(settings.Get<kDebugCollectives>() && !plan.communicators.empty()),
      reader_(bases, dynamic) {}

absl::StatusOr<std::unique_ptr<StepChecks>> StepChecks::Create(const Plan& plan, const Snapshot& settings,
                                                               const Logger& logger, std::span<void* const> bases,
                                                               std::span<const HostValue> dynamic) {
  std::unique_ptr<StepChecks> out(new StepChecks(plan, settings, logger, bases, dynamic));
  if (!plan.red_zones && !RecordsValues(settings) && !out->logs_collectives_) return nullptr;
  if (plan.red_zones) {
    MGE_ASSIGN_OR_RETURN(out->red_zones_, RedZones::Create(plan, bases));
  }
  if (const std::string& folder = settings.Get<kDebugDumpDir>(); !folder.empty()) {
    MGE_ASSIGN_OR_RETURN(out->dump_, ValueDump::Create(plan, folder, settings.Get<kDebugDumpInputs>(), logger));
  }
  if (const int64_t watched = settings.Get<kDebugWatchValue>(); watched >= 0) {
    out->watch_ = std::make_unique<ValueWatch>(plan, watched, logger);
  }
  return out;
}

void StepChecks::BeginRun(const StopControl& stop) {
  reader_.BeginRun(stop);
  if (red_zones_) red_zones_->BeginRun(stop);
  if (watch_) watch_->BeginRun();
}

absl::Status StepChecks::BeforeStep(const Step& step) {
  if (logs_collectives_ && step.fn == RunCollectiveStep) {
    const auto& communicator = *static_cast<const CollectiveStepArgs*>(step.args)->communicator;
    const Unit& unit = plan_.units[static_cast<size_t>(step.unit)];
    logger_.Warning("collective: executing {}, rank = {} of {}, key = {}", unit.main_op, communicator.rank(),
                    communicator.ranks(), UnitLabel(unit));
  }
  if (red_zones_) MGE_RETURN_IF_ERROR(red_zones_->BeforeStep(step));
  if (watch_) MGE_RETURN_IF_ERROR(watch_->BeforeStep(step, reader_));
  return dump_ ? dump_->BeforeStep(step, reader_) : absl::OkStatus();
}

absl::Status StepChecks::AfterStep(const Step& step) {
  if (red_zones_) MGE_RETURN_IF_ERROR(red_zones_->AfterStep(step));
  if (watch_) MGE_RETURN_IF_ERROR(watch_->AfterStep(step, reader_));
  return dump_ ? dump_->AfterStep(step, reader_) : absl::OkStatus();
}

bool StepChecks::Over(std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const bool over = !red_zones_ || red_zones_->Over(patience);
  return reader_.Over(end - std::chrono::steady_clock::now()) && over;
}

}  // namespace mge
