// SPDX-License-Identifier: Apache-2.0
#include "core/env/snapshot.h"

#include "fmt/format.h"

namespace mge {

std::string Origin::Describe() const {
  switch (source) {
    case Source::kDefault: return "default";
    case Source::kConfigFile: return detail;
    case Source::kEnvironment: return fmt::format("environment {}", detail);
    case Source::kCommandLine: return fmt::format("command line {}", detail);
    case Source::kCall: return detail.empty() ? "call" : fmt::format("call {}", detail);
  }
  return {};
}

LogLevel Snapshot::LogThreshold() const {
  LogOverride forced = Get<kLogOverride>();
  return forced == LogOverride::kNone ? Get<kLogLevel>() : static_cast<LogLevel>(forced);
}

const std::vector<SettingSlot>* Snapshot::Backend(std::string_view name) const {
  for (const BackendSlots& backend : backends_) {
    if (backend.name == name) return &backend.slots;
  }
  return nullptr;
}

}  // namespace mge
