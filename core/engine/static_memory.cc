// SPDX-License-Identifier: Apache-2.0
#include "core/engine/static_memory.h"

#include "core/base/errors.h"
#include "core/env/settings.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::string_view kPool = "growing";  // the pool that maps and unmaps pages

}  // namespace

absl::Status CheckPoolSettings(const Snapshot& settings) {
  if (!TakesPages(settings.Get<kMemoryStaticPolicy>())) return absl::OkStatus();
  const bool gpu = settings.Get<kMemoryGpuPool>() != GpuPool::kBackend;
  const bool all = settings.Get<kMemoryPool>() != MemoryPool::kBackend;
  if (!gpu && !all) return absl::OkStatus();
  const Origin& pool = gpu ? settings.OriginOf<kMemoryGpuPool>() : settings.OriginOf<kMemoryPool>();
  return Fail(errors::kBadSetting,
              fmt::format("{} cannot be set beside memory.static_policy=dynamic or both",
                          gpu ? kMemoryGpuPool.key : kMemoryPool.key),
              {.what = fmt::format("these policies (GE_USE_STATIC_MEMORY=3 and 4) need the pool '{}'", kPool),
               .where = fmt::format("{}; {}", settings.OriginOf<kMemoryStaticPolicy>().Describe(), pool.Describe()),
               .fix = "remove one of the two"});
}

absl::Status CheckPools(const Snapshot& settings, std::span<Device* const> devices, const Logger& logger) {
  if (!TakesPages(settings.Get<kMemoryStaticPolicy>())) return absl::OkStatus();
  MGE_RETURN_IF_ERROR(CheckPoolSettings(settings));
  for (Device* device : devices) {
    absl::StatusOr<Pool*> pool = device->PoolOf();
    if (!pool.ok()) continue;  // plans that use the device report it
    if ((*pool)->name() != kPool) {
      return Fail(errors::kBadSetting,
                  fmt::format("device {} already has the memory pool '{}'", device->name(), (*pool)->name()),
                  {.what = fmt::format("memory.static_policy=dynamic and both need the pool '{}'", kPool),
                   .where = settings.OriginOf<kMemoryStaticPolicy>().Describe(),
                   .fix = "set memory.static_policy for the whole runtime, not for a session"});
    }
    auto granularity = device->memory_api().range_granularity;
    if (granularity && granularity(device->handle())) continue;
    logger.Warning(
        "device {} maps no pages, so memory.static_policy only returns memory after each run; for a CPU, set it for the "
        "whole "
        "runtime (GE_USE_STATIC_MEMORY)",
        device->name());
  }
  return absl::OkStatus();
}

ArenaUse ArenaUseOf(StaticMemory policy, SharedArenas& arenas, const Plan& plan, const Program& program) {
  const bool fixed = program.HasFixedShapes() && !plan.continuation;
  if (!fixed) return {.per_run = TakesPages(policy)};
  if (!plan.communicators.empty()) return {};  // another rank on the same device would wait for the memory of this one
  if (policy == StaticMemory::kOff || policy == StaticMemory::kDynamic) return {};
  return {.shared = arenas.Of(plan, /*keeps=*/policy == StaticMemory::kStatic)};
}

}  // namespace mge
