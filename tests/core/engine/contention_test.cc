// SPDX-License-Identifier: Apache-2.0
#include "core/engine/contention.h"

#include "gtest/gtest.h"

namespace mge {
namespace {

constexpr int64_t kMs = 1'000'000;

// Calls ReportUsage() once a millisecond of processor time until the contention ends. Returns the milliseconds.
int64_t MsUntilTheEnd(Contention& contention, int64_t now_ns) {
  int64_t ms = 0;
  for (; contention.present() && ms < 10'000; ++ms) contention.ReportUsage({ms * kMs, 0}, now_ns + ms * kMs);
  return ms;
}

TEST(Contention, IsAbsentAtFirst) { EXPECT_FALSE(Contention().present()); }

TEST(Contention, BeginsWhenAWorkerDoesNotRunWhileItsCallerWaits) {
  Contention contention;
  EXPECT_FALSE(contention.ReportWait(3 * kMs, 3 * kMs, 1000 * kMs));  // a long chunk
  EXPECT_FALSE(contention.present());
  EXPECT_TRUE(contention.ReportWait(3 * kMs, 0, 1000 * kMs));
  EXPECT_TRUE(contention.present());
}

TEST(Contention, EndsAfterItsProbation) {
  Contention contention;
  contention.ReportWait(3 * kMs, 0, 1000 * kMs);
  EXPECT_EQ(MsUntilTheEnd(contention, 1000 * kMs), Contention::kMinProbationNs / kMs + 1);
  EXPECT_FALSE(contention.present());
}

TEST(Contention, LastsWhileTheCallerIsSuspended) {
  Contention contention;
  contention.ReportWait(3 * kMs, 0, 1000 * kMs);
  for (int64_t ms = 0; ms < 1000; ++ms) contention.ReportUsage({ms * kMs, ms / 5}, (1000 + ms) * kMs);
  EXPECT_TRUE(contention.present());
}

TEST(Contention, EndsThoughOtherProgramsRunNowAndThen) {
  Contention contention;
  for (int i = 0; i < 6; ++i) {
    contention.ReportWait(3 * kMs, 0, 1000 * kMs);
    for (int64_t ms = 0; ms < 2000; ++ms) contention.ReportUsage({ms * kMs, ms / 50}, 1000 * kMs);
    EXPECT_FALSE(contention.present());
  }
}

TEST(Contention, LastsWhileTheProcessIsIdle) {
  Contention contention;
  contention.ReportWait(3 * kMs, 0, 1000 * kMs);
  for (int64_t s = 0; s < 100; ++s) contention.ReportUsage({s * 1000, 0}, s * 1000 * kMs);
  EXPECT_TRUE(contention.present());
}

TEST(Contention, LastsLongerIfItReturnsSoonUpToALimit) {
  Contention contention;
  int64_t now_ns = 1000 * kMs, last_ms = 0;
  for (int i = 0; i < 10; ++i) {
    contention.ReportWait(3 * kMs, 0, now_ns);
    const int64_t ms = MsUntilTheEnd(contention, now_ns);
    EXPECT_GE(ms, last_ms);
    last_ms = ms;
    now_ns += (ms + 1) * kMs;
  }
  EXPECT_EQ(last_ms, Contention::kMaxProbationNs / kMs + 1);
  now_ns += 60'000 * kMs;
  contention.ReportWait(3 * kMs, 0, now_ns);
  EXPECT_EQ(MsUntilTheEnd(contention, now_ns), Contention::kMinProbationNs / kMs + 1);
}

}  // namespace
}  // namespace mge
