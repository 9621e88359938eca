// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using testing::ElementsAre;

struct Lines {
  std::vector<std::string> lines;
  static void Keep(void* self, LogLevel level, std::string_view message) {
    static_cast<Lines*>(self)->lines.push_back(std::string(LogLevelName(level)) + ": " + std::string(message));
  }
};

TEST(Logger, WritesFromItsLevelUpwards) {
  Lines kept;
  Logger logger(LogLevel::kWarning, Lines::Keep, &kept);
  logger.Debug("a");
  logger.Info("b");
  logger.Warning("{} of {}", 1, 2);
  logger.Error("c");
  EXPECT_THAT(kept.lines, ElementsAre("warning: 1 of 2", "error: c"));
}

TEST(Logger, SilentWritesNothing) {
  Lines kept;
  Logger logger(LogLevel::kSilent, Lines::Keep, &kept);
  logger.Error("a");
  logger.Log(LogLevel::kSilent, "b");
  EXPECT_TRUE(kept.lines.empty());
}

TEST(Logger, EscapesTerminalControlCharacters) {
  Lines kept;
  Logger(LogLevel::kDebug, Lines::Keep, &kept).Info("a\nb\033[31m");
  EXPECT_THAT(kept.lines, ElementsAre("info: a\\x0ab\\x1b[31m"));
}

TEST(Logger, WritesLinesToStandardErrorByDefault) {
  testing::internal::CaptureStderr();
  Logger().Warning("no {}", "effect");
  Logger().Info("unseen");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "mge: warning: no effect\n");
}

}  // namespace
}  // namespace mge
