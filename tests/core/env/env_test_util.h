// SPDX-License-Identifier: Apache-2.0
// Utilities of the tests of the registry: a logger that keeps its lines, and temporary configuration files.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/env/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {

// A logger that keeps its messages as "warning: ...".
struct LogLines {
  std::vector<std::string> lines;
  static void Keep(void* self, LogLevel level, std::string_view message) {
    static_cast<LogLines*>(self)->lines.push_back(std::string(LogLevelName(level)) + ": " + std::string(message));
  }
  Logger logger() { return Logger(LogLevel::kWarning, Keep, this); }
};

// A temporary directory, removed by the destructor.
class ScratchDir {
 public:
  ScratchDir() {
    std::string pattern = testing::TempDir() + "/mge_env_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchDir() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, std::string_view text) const {
    std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

inline Sources FromEnvironment(Variables variables) { return {.environment = {std::move(variables)}}; }

inline std::unique_ptr<Registry> MustCreate(Sources sources, Logger logger = Logger(LogLevel::kSilent)) {
  auto registry = Registry::Create(std::move(sources), logger);
  if (!registry.ok()) {
    ADD_FAILURE() << FormatError(registry.status());
    abort();
  }
  return *std::move(registry);
}

inline SettingInfo InfoOf(const Registry& registry, std::string_view key) {
  for (SettingInfo& info : registry.List()) {
    if (info.key == key) return info;
  }
  ADD_FAILURE() << "no setting " << key;
  return {};
}

// Creates a registry, which must fail. Returns its error with all four parts, as the user sees it.
inline std::string ErrorOf(Sources sources) {
  auto registry = Registry::Create(std::move(sources), Logger(LogLevel::kSilent));
  return registry.ok() ? "ok" : FormatError(registry.status());
}

}  // namespace mge
