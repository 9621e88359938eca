// SPDX-License-Identifier: Apache-2.0
#include "core/env/foreign_names.h"

#include <algorithm>

namespace mge {
namespace {

// MegEngine's names that begin like our own variables.
constexpr std::string_view kMegEngine[] = {"CUDA_BIN_PATH",         "MGE_DATALOADER_PLASMA_DEBUG", "MGE_DEFAULT_DEVICE",
                                           "MGE_FASTRUN_CACHE_DIR", "MGE_FASTRUN_CACHE_TYPE",      "MGE_MM_OPR_DEBUG",
                                           "MGE_PLASMA_MEMORY",     "RUNTIME_OVERRIDE_LOG_LEVEL"};

struct Prefix {
  std::string_view prefix, system;
};
constexpr Prefix kPrefixes[] = {
    {"MXNET_", "MXNet"},  {"NNVM_", "MXNet"},   {"MEGENGINE_", "MegEngine"},          {"MGB_", "MegEngine"},
    {"GE_", "Ascend GE"}, {"ge.", "Ascend GE"}, {"static_memory_policy", "Ascend GE"}};

}  // namespace

std::string_view SystemOf(std::string_view name) {
  if (std::find(std::begin(kMegEngine), std::end(kMegEngine), name) != std::end(kMegEngine)) return "MegEngine";
  for (const Prefix& p : kPrefixes) {
    if (name.starts_with(p.prefix)) return p.system;
  }
  return {};
}

std::vector<ForeignName> ForeignNamesOf(std::string_view variable, const std::vector<std::string>& aliases) {
  std::vector<ForeignName> out;
  auto add = [&](std::string_view name) {
    if (std::string_view system = SystemOf(name); !system.empty()) out.push_back({std::string(name), system});
  };
  add(variable);
  for (const std::string& alias : aliases) add(alias);
  return out;
}

}  // namespace mge
