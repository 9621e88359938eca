// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan_context.h"

#include <algorithm>

#include "core/base/exception.h"

namespace mge {

bool SkippedNames::Has(std::string_view name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

Device& HostStepDevice(const PlanContext& context) {
  for (Device* device : context.devices) {
    if (!HasQueues(*device)) return *device;
  }
  MGE_CHECK(context.services->host);
  return *context.services->host;
}

int32_t StepsPerOperation(const PlanContext& context) {
  const Snapshot& settings = *context.settings;
  if (settings.Get<kEngineType>() == EngineType::kNaive) return 1;
  if (!context.training) return settings.Get<kBulkInference>() ? kAllSteps : 1;
  return settings.Get<kBulkTrain>() ? static_cast<int32_t>(std::max<int64_t>(settings.Get<kBulkTrainSteps>(), 1)) : 1;
}

absl::Status ForEachOnPool(const PlanContext& context, uint64_t count, const std::function<absl::Status(uint64_t)>& body) {
  constexpr uint64_t kFew = 4;  // waking the pool is not worth it for less
  std::vector<absl::Status> results(count);
  const std::function<void(uint64_t)> one = [&](uint64_t i) { results[i] = NoThrow([&] { return body(i); }); };
  if (context.services->parallel_for && count >= kFew) {
    context.services->parallel_for(context.threads, count, one);
  } else {
    for (uint64_t i = 0; i < count; ++i) one(i);
  }
  auto failed = std::find_if(results.begin(), results.end(), [](const absl::Status& s) { return !s.ok(); });
  return failed == results.end() ? absl::OkStatus() : *failed;
}

}  // namespace mge
