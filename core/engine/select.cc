// SPDX-License-Identifier: Apache-2.0
#include "core/engine/select.h"

#include "core/base/errors.h"
#include "core/plan/fallback_log.h"
#include "core/plan/kernels/timing_workers.h"
#include "core/plan/program.h"
#include "fmt/format.h"
#include "mge/plugin/attributes.hpp"

namespace mge {

std::string UserCacheDirectory(const Environment& environment) {
  if (auto cache = environment.Find("XDG_CACHE_HOME"); cache && cache->starts_with('/')) return std::string(*cache);
  const std::string home = HomeDirectory(environment);
  return home.empty() ? std::string() : home + "/.cache";
}

absl::StatusOr<RuntimeSelection> MakeSelection(const Snapshot& settings, const std::string& user_cache_directory,
                                               const Logger& logger) {
  RuntimeSelection out;
  std::string directory = settings.Get<kSelectCacheDir>();
  if (directory.empty() && !user_cache_directory.empty()) directory = user_cache_directory + "/mge/tuning";
  if (settings.Get<kSelectCacheType>() == TuningStore::kMemory) directory.clear();
  out.cache = std::make_shared<TuningCache>(std::move(directory), logger);
  if (settings.Get<kLogStorageFallback>()) {
    const bool asked = settings.IsSet<kLogStorageFallback>();
    out.fallbacks = std::make_shared<FallbackLog>(logger, asked ? LogLevel::kWarning : LogLevel::kInfo);
  }
  if (const std::string& path = settings.Get<kSelectFrozen>(); !path.empty()) {
    MGE_ASSIGN_OR_RETURN(out.frozen, FrozenSelection::Read(path));
  }
  if (const std::string& path = settings.Get<kSelectFreeze>(); !path.empty()) {
    MGE_ASSIGN_OR_RETURN(out.recorder, SelectionRecorder::Create(path));
  }
  return out;
}

namespace {

// Prefixes of settings that a worker must not get: files that this process writes, messages, and the search for backends,
// of which a worker gets the result.
constexpr std::string_view kNotForWorkers[] = {"select.", "log.", "profile.", "debug.", "plugin.path", "plugin.start_"};

std::vector<std::pair<std::string, std::string>> SettingsForWorkers(const Registry& registry) {
  std::vector<std::pair<std::string, std::string>> out;
  for (SettingInfo& row : registry.List()) {
    auto begins = [&](std::string_view prefix) { return row.key.starts_with(prefix); };
    if (row.origin == Origin().Describe() || std::any_of(std::begin(kNotForWorkers), std::end(kNotForWorkers), begins)) {
      continue;
    }
    out.emplace_back(std::move(row.key), std::move(row.value));
  }
  return out;
}

}  // namespace

std::shared_ptr<TimingWorkers> MakeTimingWorkers(const Registry& registry, std::string program,
                                                 std::span<const PluginDirectory> directories) {
  const double seconds = registry.snapshot()->Get<kSelectProfilingTimeout>().count();
  if (seconds <= 0) return nullptr;
  TimingWorkers::Options options = {.seconds = seconds,
                                    .program = std::move(program),
                                    .plugin_directories = {},
                                    .settings = [&registry] { return SettingsForWorkers(registry); },
                                    .logger = registry.logger()};
  for (const PluginDirectory& d : directories) options.plugin_directories.push_back(d.path);
  return std::make_shared<TimingWorkers>(std::move(options));
}

namespace {

// Sets the choice of GPU convolutions. A reproducible strategy stays, since it forbids times.
void ApplyConvolutions(const Snapshot& settings, PlanContext& out) {
  const ConvAutotune autotune = settings.Get<kSelectConvAutotune>();
  GpuConvolutions chosen;
  if (autotune != ConvAutotune::kOff) chosen.mode = MGE_SELECT_PROFILE;
  if (autotune != ConvAutotune::kFastest) {
    chosen.workspace_limit = static_cast<uint64_t>(settings.Get<kSelectWorkspaceLimit>().count);
  }
  if (out.select_mode == MGE_SELECT_REPRODUCIBLE) chosen.mode = MGE_SELECT_REPRODUCIBLE;
  out.gpu_convolutions = chosen;
  out.kernel_restrictions.push_back(fmt::format(
      "convolutions on GPUs are chosen by {}{} ({}: {})",
      chosen.mode == MGE_SELECT_PROFILE     ? "time"
      : chosen.mode == MGE_SELECT_HEURISTIC ? "estimate"
                                            : "the reproducible strategy, which forbids times",
      chosen.workspace_limit == UINT64_MAX ? "" : fmt::format(", workspace up to {} bytes", chosen.workspace_limit),
      kSelectConvAutotune.key, settings.OriginOf<kSelectConvAutotune>().Describe()));
}

}  // namespace

absl::Status ApplyStrategy(const Snapshot& settings, const RuntimeSelection& runtime, const Logger& logger,
                           PlanContext& out) {
  Flags<Strategy> strategy = settings.Get<kSelectStrategy>();
  const bool profile = strategy.Has(Strategy::kProfile), reproducible = strategy.Has(Strategy::kReproducible);
  auto say = [&](std::string_view what, uint64_t attributes, std::string_view key, const Origin& origin) {
    out.kernel_restrictions.push_back(
        fmt::format("{} of kernels: {} ({}: {})", what, AttributeText(attributes), key, origin.Describe()));
  };
  auto forbid = [&](uint64_t attributes, std::string_view key, const Origin& origin) {
    out.forbid |= attributes;
    say("not allowed", attributes, key, origin);
  };
  auto tools = std::make_shared<SelectionTools>();
  tools->cache = runtime.cache;
  tools->workers = runtime.workers;
  tools->frozen = runtime.frozen;
  tools->recorder = runtime.recorder;
  tools->logger = logger;
  tools->limits = {settings.Get<kSelectTime>().count(), static_cast<uint64_t>(settings.Get<kSelectMemory>().count)};
  if (reproducible) {
    if (profile && !runtime.frozen) {
      return Fail(errors::kBadSetting, "select.strategy = profile_reproducible needs a frozen selection",
                  {.what = "the strategy REPRODUCIBLE does not permit a choice by time",
                   .where = settings.OriginOf<kSelectStrategy>().Describe(),
                   .fix = "set select.frozen to a file of select.freeze, or set select.strategy = reproducible"});
    }
    tools->only_frozen = profile;
    out.select_mode = MGE_SELECT_REPRODUCIBLE;
    out.require |= MGE_KERNEL_DETERMINISTIC;
    say("required", MGE_KERNEL_DETERMINISTIC, kSelectStrategy.key, settings.OriginOf<kSelectStrategy>());
  } else if (profile) {
    out.select_mode = MGE_SELECT_PROFILE;
    // PROFILE and HEURISTIC together: use stored times if there are some, else the heuristic. Measure none.
    tools->may_measure = !strategy.Has(Strategy::kHeuristic);
  } else if (strategy.Has(Strategy::kHeuristic) && settings.IsSet<kSelectStrategy>()) {
    out.select_mode = MGE_SELECT_HEURISTIC;
  } else {
    for (const Device* device : out.devices) {
      const int32_t mode = SelectModeOn(out, *device);
      if (mode == MGE_SELECT_HEURISTIC) continue;
      out.kernel_restrictions.push_back(
          fmt::format("kernels of {} are chosen by {}: its backend's default, as select.strategy names no "
                      "mode",
                      device->name(), mode == MGE_SELECT_PROFILE ? "profile" : "reproducible"));
    }
  }
  if (settings.IsSet<kSelectConvAutotune>()) ApplyConvolutions(settings, out);
  if (settings.Get<kSelectDeterministic>()) {
    out.require |= MGE_KERNEL_DETERMINISTIC;
    out.only_deterministic = true;
    say("required", MGE_KERNEL_DETERMINISTIC, kSelectDeterministic.key, settings.OriginOf<kSelectDeterministic>());
  }
  if (strategy.Has(Strategy::kOptimized)) {
    forbid(MGE_KERNEL_REFERENCE, kSelectStrategy.key, settings.OriginOf<kSelectStrategy>());
  }
  if (!settings.Get<kSelectTensorCore>()) {
    forbid(MGE_KERNEL_TENSOR_CORE | MGE_KERNEL_REDUCED_PRECISION, kSelectTensorCore.key,
           settings.OriginOf<kSelectTensorCore>());
  } else if (!settings.Get<kSelectTensorCoreConversion>()) {
    forbid(MGE_KERNEL_REDUCED_PRECISION, kSelectTensorCoreConversion.key, settings.OriginOf<kSelectTensorCoreConversion>());
  }
  out.selection = std::move(tools);
  return absl::OkStatus();
}

}  // namespace mge
