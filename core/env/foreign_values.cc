// SPDX-License-Identifier: Apache-2.0
#include "core/env/foreign_values.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "core/env/setting_text.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::string_view kStaticMemory = "0, 1, 2, 3, 4";
constexpr ForeignValues kForeignValues[] = {
    {"MXNET_ENGINE_TYPE", "NaiveEngine, ThreadedEngine, ThreadedEnginePerDevice", ""},
    {"MXNET_GPU_MEM_POOL_TYPE", "Naive, Round, Unpooled", "Naive"},
    {"MXNET_CUDNN_AUTOTUNE_DEFAULT", "0, 1, 2", "1"},
    {"MEGENGINE_EXECUTION_STRATEGY", "HEURISTIC, PROFILE, REPRODUCEABLE, OPTIMIZED", "HEURISTIC"},
    {"MXNET_EXEC_NUM_TEMP", "", "1"},
    {"MXNET_GPU_MEM_POOL_RESERVE", "", "5"},
    {"MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "", "1"},
    {"MXNET_MKLDNN_ENABLED", "", "1"},
    {"MXNET_CPU_NNPACK_NTHREADS", "", "4"},
    {"MXNET_CPU_PARALLEL_COPY_SIZE", "", "200000"},
    {"MXNET_USE_OPERATOR_TUNING", "", "1"},
    {"MXNET_ENABLE_OPERATOR_TUNING", "", "1"},
    {"MXNET_USE_NUM_CORES_OPERATOR_TUNING", "", "-1"},
    {"MEGENGINE_LOGGING_LEVEL", "DEBUG, INFO, WARNING, ERROR", "INFO"},
    {"RUNTIME_OVERRIDE_LOG_LEVEL", "0, 1, 2, 3, 4", "3"},
    {"MEGENGINE_HOST_COMPUTE", "0, 1", "1"},
    {"MEGENGINE_INTERP_ASYNC_LEVEL", "0, 1, 2", ""},
    {"MGE_FASTRUN_CACHE_TYPE", "FILE, MEMORY", ""},
    {"MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "", "15"},
    {"MGE_FASTRUN_CACHE_DIR", "", "~/.cache/megengine/persistent_cache"},
    {"MXNET_GLUON_REPO", "", "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"},
    {"MXNET_MKLDNN_CACHE_NUM", "", "-1", "-1"},
    {"MGB_CONV_PROFILING_TIMEOUT", "", "", "0"},
    {"MEGENGINE_DTR_EVICTION_THRESHOLD", "", "", "0"},
    {"MGB_JIT_BACKEND", "HALIDE, NVRTC, MLIR", ""},
    {"GE_USE_STATIC_MEMORY", kStaticMemory, ""},
    {"ge.exec.staticMemoryPolicy", kStaticMemory, ""},
    {"static_memory_policy", kStaticMemory, ""},
};

constexpr ForeignValues kAsOurs = {};

// Returns the row of a foreign name, or an empty one if its values and its default are as ours.
const ForeignValues& PageOf(std::string_view name) {
  for (const ForeignValues& page : kForeignValues) {
    if (page.name == name) return page;
  }
  return kAsOurs;
}

}  // namespace

std::span<const ForeignValues> AllForeignValues() { return kForeignValues; }

std::string AllowedTextFor(const SettingRow& row, std::string_view name) {
  const ForeignValues& page = PageOf(name);
  if (!page.allowed.empty()) return std::string(page.allowed);
  std::string text = AllowedText(row);
  if (!page.word.empty() && text.ends_with(row.word))
    text.replace(text.size() - row.word.size(), row.word.size(), page.word);
  return text;
}

absl::StatusOr<SettingValue> ParseFor(const SettingRow& row, std::string_view name, std::string_view text,
                                      std::string_view home) {
  const ForeignValues& page = PageOf(name);
  if (!page.word.empty() && !row.word.empty()) {
    SettingRow numbers = row;  // without a range, so that every spelling of the page's number is seen
    numbers.ranged = false;
    const absl::StatusOr<SettingValue> given = ParseSetting(numbers, text), word = ParseSetting(numbers, page.word);
    if (given.ok() && word.ok() && *given == *word) return ParseSetting(row, row.word);
  }
  return ParseSetting(row, text, home);
}

std::string MeaningsFor(const SettingRow& row, std::string_view name) {
  if (row.type != SettingType::kChoice) return {};
  std::string out;
  bool differ = false;
  for (std::string_view rest = PageOf(name).allowed; !rest.empty();) {
    const std::string_view text = rest.substr(0, rest.find(", "));
    rest.remove_prefix(std::min(rest.size(), text.size() + 2));
    const absl::StatusOr<SettingValue> value = ParseSetting(row, text);
    if (!value.ok()) continue;
    const std::string ours = FormatSetting(row, *value);
    differ |=
        !absl::EqualsIgnoreCase(absl::string_view(ours.data(), ours.size()), absl::string_view(text.data(), text.size()));
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", text, ours);
  }
  return differ ? out : std::string();
}

std::string ValueTextFor(const SettingRow& row, const SettingValue& value, std::string_view name) {
  const ForeignValues& page = PageOf(name);
  std::string_view rest = page.allowed;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(", "));
    if (absl::StatusOr<SettingValue> parsed = ParseSetting(row, word); parsed.ok() && *parsed == value) {
      return std::string(word);
    }
    rest.remove_prefix(std::min(word.size() + 2, rest.size()));
  }
  std::string text = FormatSetting(row, value);
  return !page.word.empty() && text == row.word ? std::string(page.word) : text;
}

std::string DefaultTextFor(const SettingRow& row, const SettingValue& default_value, std::string_view name) {
  if (!row.unset.empty()) return std::string(row.unset);
  return row.sets.empty() ? ValueTextFor(row, default_value, name) : fmt::format("that of {}", row.sets);
}

std::string_view PageDefault(std::string_view name) { return PageOf(name).page_default; }

}  // namespace mge
