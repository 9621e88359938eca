// SPDX-License-Identifier: Apache-2.0
// Log messages that are not returned as errors. A Logger is a value that is passed to each layer; there is
// no global logger.
#pragma once

#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"

namespace mge {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3, kSilent = 4 };

std::string_view LogLevelName(LogLevel level);  // "warning"

class Logger {
 public:
  // A callback for one message, which has no line break and whose control characters are escaped. It may be
  // called by several threads at a time and must not throw. `state` is not owned; it must outlive every copy
  // of the logger.
  using Sink = void (*)(void* state, LogLevel level, std::string_view message);

  // Creates a logger that writes messages of at least `level` to standard error, as "mge: warning: ...".
  explicit Logger(LogLevel level = LogLevel::kWarning);
  Logger(LogLevel level, Sink sink, void* state) : level_(level), sink_(sink), state_(state) {}

  LogLevel level() const { return level_; }
  void set_level(LogLevel level) { level_ = level; }  // of this copy only
  bool On(LogLevel level) const { return level >= level_ && level < LogLevel::kSilent; }

  // Formats and writes the message if `level` is enabled. If there is no memory for the message, drops it: a log message
  // must not make the caller's work fail.
  template <typename... Args>
  void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) const noexcept {
    if (!On(level)) return;
    try {
      Write(level, fmt::format(format, std::forward<Args>(args)...));
    } catch (const std::bad_alloc&) {
    }
  }
  template <typename... Args>
  void Debug(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    Log(LogLevel::kDebug, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Info(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    Log(LogLevel::kInfo, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Warning(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    Log(LogLevel::kWarning, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Error(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    Log(LogLevel::kError, format, std::forward<Args>(args)...);
  }

 private:
  void Write(LogLevel level, std::string message) const;

  LogLevel level_;
  Sink sink_;
  void* state_ = nullptr;
};

}  // namespace mge
