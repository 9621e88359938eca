// SPDX-License-Identifier: Apache-2.0
#include "core/engine/select.h"

#include "core/plan/kernels/timing_workers.h"

namespace mge {

std::string UserCacheDirectory(const Environment& environment) {
  if (auto cache = environment.Find("XDG_CACHE_HOME"); cache && cache->starts_with('/')) return std::string(*cache);
  const std::string home = HomeDirectory(environment);
  return home.empty() ? std::string() : home + "/.cache";
}

absl::StatusOr<SelectionTools> MakeSelection(const Snapshot& settings, const std::string& user_cache_directory,
                                             const Logger& logger) {
  SelectionTools out;
  out.logger = logger;
  std::string directory = settings.Get<kSelectCacheDir>();
  if (directory.empty() && !user_cache_directory.empty()) directory = user_cache_directory + "/mge/tuning";
  if (settings.Get<kSelectCacheType>() == TuningStore::kMemory) directory.clear();
  out.cache = std::make_shared<TuningCache>(std::move(directory), logger);
  if (const std::string& path = settings.Get<kSelectReplay>(); !path.empty()) {
    MGE_ASSIGN_OR_RETURN(out.replay, SelectionFile::Read(path));
  }
  if (const std::string& path = settings.Get<kSelectRecord>(); !path.empty()) {
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

}  // namespace mge
