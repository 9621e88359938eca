// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <cstdio>

#include "core/base/status.h"

namespace mge {
namespace {

void WriteToStandardError(void*, LogLevel level, std::string_view message) {
  // One call per line, so that the lines of several threads do not mix.
  std::string line = fmt::format("mge: {}: {}\n", LogLevelName(level), message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
    case LogLevel::kSilent: break;
  }
  return "silent";
}

Logger::Logger(LogLevel level) : level_(level), sink_(WriteToStandardError) {}

void Logger::Write(LogLevel level, std::string message) const { sink_(state_, level, EscapeControl(message)); }

}  // namespace mge
