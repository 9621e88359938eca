// SPDX-License-Identifier: Apache-2.0
#include "core/engine/memory_settings.h"

#include <span>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/engine/static_memory.h"
#include "core/env/settings.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the name of a pool, or an empty text for the value "backend".
template <typename Pool>
std::string PoolName(Pool pool, std::span<const Choice> choices) {
  if (pool == Pool::kBackend) return {};
  for (const Choice& c : choices) {
    if (c.value == static_cast<int64_t>(pool)) return std::string(c.name);
  }
  return {};
}

// Adds the reserve of the devices of one class, if the user has set it. `text` is 0, 1 or b:BYTES.
template <const auto& kSetting>
absl::Status AddReserve(const Snapshot& settings, std::string class_name, DevicesOptions& out) {
  if (!settings.IsSet<kSetting>()) return absl::OkStatus();
  const std::string_view text = settings.Get<kSetting>();
  std::string policy = text == "0" ? "none" : text == "1" ? "all" : fmt::format("bytes:{}", text.substr(2));
  const bool gpu_pool = !out.gpu_memory.pool.empty();
  const std::string& pool = gpu_pool ? out.gpu_memory.pool : out.memory.pool;
  if (policy != "none" && !pool.empty() && pool != "growing") {
    const Origin& origin = gpu_pool ? settings.OriginOf<kMemoryGpuPool>() : settings.OriginOf<kMemoryPool>();
    return Fail(errors::kBadSetting, fmt::format("{}={} cannot be used with the memory pool '{}'", kSetting.key, text, pool),
                {.what = "this pool allocates each block separately, and cannot cut blocks out of reserved memory",
                 .where = fmt::format("{}; {}", settings.OriginOf<kSetting>().Describe(), origin.Describe()),
                 .fix = "remove one of the two, or set memory.pool=growing alone"});
  }
  out.reserve_of_class.emplace_back(std::move(class_name), std::move(policy));
  return absl::OkStatus();
}

}  // namespace

absl::Status SetMemory(const Snapshot& settings, DevicesOptions& out) {
  const MemoryLimits& limits = settings.Get<kMemoryLimit>();
  if (limits.all) out.memory_limit = static_cast<uint64_t>(limits.all->count);
  for (const auto& [name, bytes] : limits.by_device) {
    out.memory_limits.push_back({name, static_cast<uint64_t>(bytes.count)});
  }
  out.memory.pool = PoolName(settings.Get<kMemoryPool>(), setting_choices::kMemoryPools);
  MGE_RETURN_IF_ERROR(CheckPoolSettings(settings));
  if (TakesPages(settings.Get<kMemoryStaticPolicy>())) out.memory.pool = "growing";
  out.memory.reserve = settings.Get<kMemoryReserve>();
  MGE_RETURN_IF_ERROR(
      AddWhere(ReservePolicy::Parse(out.memory.reserve).status(), settings.OriginOf<kMemoryReserve>().Describe()));

  MemoryOptions& gpu = out.gpu_memory;
  gpu.pool = PoolName(settings.Get<kMemoryGpuPool>(), setting_choices::kGpuPools);
  gpu.numbers.linear_cutoff = static_cast<int>(settings.Get<kMemoryRoundCutoff>());
  gpu.numbers.large_round_bytes = static_cast<uint64_t>(settings.Get<kMemoryLargeRound>().count);
  if (!gpu.pool.empty() || settings.IsSet<kMemoryGpuReserve>()) {
    gpu.keep_free_percent = static_cast<int>(settings.Get<kMemoryGpuReserve>());
  }
  MGE_RETURN_IF_ERROR(AddReserve<kMemoryReserveCuda>(settings, "cuda", out));
  return AddReserve<kMemoryReserveRocm>(settings, "rocm", out);
}

}  // namespace mge
