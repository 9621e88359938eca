// SPDX-License-Identifier: Apache-2.0
#include "core/env/foreign_values.h"

#include <algorithm>

#include "core/env/setting_text.h"

namespace mge {
namespace {

constexpr std::string_view kStaticMemory = "0, 1, 2, 3, 4";
constexpr ForeignValues kForeignValues[] = {
    {"MXNET_ENGINE_TYPE", "NaiveEngine, ThreadedEngine, ThreadedEnginePerDevice", ""},
    {"MXNET_GPU_MEM_POOL_TYPE", "Naive, Round, Unpooled", "Naive"},
    {"MXNET_CUDNN_AUTOTUNE_DEFAULT", "0, 1, 2", ""},
    {"MEGENGINE_EXECUTION_STRATEGY", "HEURISTIC, PROFILE, REPRODUCEABLE, OPTIMIZED", ""},
    {"MEGENGINE_LOGGING_LEVEL", "DEBUG, INFO, WARNING, ERROR", "INFO"},
    {"RUNTIME_OVERRIDE_LOG_LEVEL", "0, 1, 2, 3, 4", "3"},
    {"MEGENGINE_HOST_COMPUTE", "0, 1", "1"},
    {"MGE_FASTRUN_CACHE_TYPE", "FILE, MEMORY", ""},
    {"MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "", "15"},
    {"MGE_FASTRUN_CACHE_DIR", "", "~/.cache/megengine/persistent_cache"},
    {"MGB_JIT_BACKEND", "NVRTC", ""},
    {"GE_USE_STATIC_MEMORY", kStaticMemory, ""},
    {"ge.exec.staticMemoryPolicy", kStaticMemory, ""},
    {"static_memory_policy", kStaticMemory, ""},
};

const ForeignValues* Find(std::string_view name) {
  auto at = std::find_if(std::begin(kForeignValues), std::end(kForeignValues),
                         [&](const ForeignValues& v) { return v.name == name; });
  return at == std::end(kForeignValues) || at->allowed.empty() ? nullptr : at;
}

}  // namespace

std::span<const ForeignValues> AllForeignValues() { return kForeignValues; }

std::string AllowedTextFor(const SettingRow& row, std::string_view name) {
  const ForeignValues* page = Find(name);
  return page ? std::string(page->allowed) : AllowedText(row);
}

std::string ValueTextFor(const SettingRow& row, const SettingValue& value, std::string_view name) {
  if (const ForeignValues* page = Find(name)) {
    std::string_view rest = page->allowed;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(", "));
      if (absl::StatusOr<SettingValue> parsed = ParseSetting(row, word); parsed.ok() && *parsed == value) {
        return std::string(word);
      }
      rest.remove_prefix(std::min(word.size() + 2, rest.size()));
    }
  }
  return FormatSetting(row, value);
}

std::string_view PageDefault(std::string_view name) {
  for (const ForeignValues& page : kForeignValues) {
    if (page.name == name) return page.page_default;
  }
  return {};
}

}  // namespace mge
