// SPDX-License-Identifier: Apache-2.0
#include "core/env/needs.h"

#include <string_view>

#include "fmt/format.h"

namespace mge {
namespace {

struct Need {
  NeedsOf part;
  std::string_view key;
  const Origin* (*set)(const Snapshot& settings);  // returns null if no source set it, or to what does nothing anyway
  bool (*met)(const Snapshot& settings);
  std::string_view needed;  // as users write it
};

template <const auto& kSetting>
const Origin* SetBy(const Snapshot& settings) {
  return settings.IsSet<kSetting>() ? &settings.OriginOf<kSetting>() : nullptr;
}
template <const auto& kSwitch>
const Origin* OnBy(const Snapshot& settings) {
  return settings.Get<kSwitch>() ? SetBy<kSwitch>(settings) : nullptr;
}
template <const auto& kSwitch>
bool IsOn(const Snapshot& settings) {
  return settings.Get<kSwitch>();
}
template <const auto& kText>
bool HasText(const Snapshot& settings) {
  return !settings.Get<kText>().empty();
}
bool Drops(const Snapshot& s) { return s.Get<kEagerDrop>() || s.Get<kEagerDtr>(); }
bool PoolIsNaive(const Snapshot& s) {
  return s.Get<kMemoryGpuPool>() == GpuPool::kNaive || s.Get<kMemoryPool>() == MemoryPool::kNaive;
}
bool PoolIsRound(const Snapshot& s) {
  return s.Get<kMemoryGpuPool>() == GpuPool::kRound || s.Get<kMemoryPool>() == MemoryPool::kRound;
}
bool Tunes(const Snapshot& s) { return s.IsSet<kComputeOperatorTuning>() && s.Get<kComputeOperatorTuning>() != "0"; }
bool CachesInFiles(const Snapshot& s) { return s.Get<kSelectCacheType>() == TuningStore::kFile; }

// Returns the row of a setting that needs a switch, or of a switch.
template <const auto& kSetting>
constexpr Need Row(NeedsOf part, bool (*met)(const Snapshot&), std::string_view needed) {
  if constexpr (std::is_same_v<typename std::remove_cvref_t<decltype(kSetting)>::Traits::ResultType, bool>) {
    return {part, kSetting.key, OnBy<kSetting>, met, needed};
  } else {
    return {part, kSetting.key, SetBy<kSetting>, met, needed};
  }
}

constexpr NeedsOf kSession = NeedsOf::kSession, kEager = NeedsOf::kEager;
constexpr Need kNeeds[] = {
    Row<kDebugDumpInputs>(kSession, HasText<kDebugDumpDir>, "debug.dump_dir, the folder for the files"),
    Row<kSublinearTries>(kSession, IsOn<kTrainSublinear>, "train.sublinear = true"),
    Row<kSublinearGenerations>(kSession, IsOn<kTrainSublinear>, "train.sublinear = true"),
    Row<kSublinearPopulation>(kSession, IsOn<kTrainSublinear>, "train.sublinear = true"),
    Row<kSublinearLowerBound>(kSession, IsOn<kTrainSublinear>, "train.sublinear = true"),
    Row<kSublinearWorkers>(kSession, IsOn<kTrainSublinear>, "train.sublinear = true"),
    Row<kKvstoreLogTree>(kSession, IsOn<kKvstoreTree>, "kvstore.tree = true"),
    Row<kKvstoreTreeArray>(kSession, IsOn<kKvstoreTree>, "kvstore.tree = true"),
    Row<kKvstoreBacktrack>(kSession, IsOn<kKvstoreTree>, "kvstore.tree = true"),
    Row<kKvstorePenalty>(kSession, IsOn<kKvstoreTree>, "kvstore.tree = true"),
    Row<kBulkTrainSteps>(kSession, IsOn<kBulkTrain>, "engine.bulk_train = true"),
    Row<kComputeMkldnnCache>(kSession, IsOn<kComputeMkldnn>, "compute.mkldnn = true"),
    Row<kComputeTuningCores>(kSession, Tunes, "compute.operator_tuning"),
    Row<kJitWorkDir>(kSession, IsOn<kJitKeepFiles>, "jit.keep_files = true"),
    Row<kSelectCacheDir>(kSession, CachesInFiles, "select.cache_type = FILE"),
    Row<kMemoryLargeRound>(kSession, PoolIsNaive, "memory.gpu_pool = Naive"),
    Row<kMemoryRoundCutoff>(kSession, PoolIsRound, "memory.gpu_pool = Round"),
    Row<kEagerDtrThreshold>(kEager, IsOn<kEagerDtr>, "eager.dtr_auto_drop = true"),
    Row<kEagerDtrMinimum>(kEager, IsOn<kEagerDtr>, "eager.dtr_auto_drop = true"),
    Row<kEagerRecordPath>(kEager, Drops, "eager.drop = true"),
};

}  // namespace

std::vector<std::string> UnmetNeeds(const Snapshot& settings, NeedsOf part) {
  std::vector<std::string> out;
  for (const Need& need : kNeeds) {
    const Origin* origin = need.part == part ? need.set(settings) : nullptr;
    if (!origin || need.met(settings)) continue;
    out.push_back(fmt::format("{} has no effect without {} ({})", need.key, need.needed, origin->Describe()));
  }
  return out;
}

}  // namespace mge
