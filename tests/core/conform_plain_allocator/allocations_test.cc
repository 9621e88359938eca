// SPDX-License-Identifier: Apache-2.0
// The kit in a program that cannot let a backend's allocations fail: it reports that these checks did not run.
#include "core/conform/conform.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge::conform {
namespace {

TEST(PlainAllocator, ChecksOfFailingAllocationsDoNotPassIfAllocationsCannotFail) {
  absl::StatusOr<Report> report = CheckBackend(MGE_BINARY_DIR "/tests/mutants/none.so", {.quick = true});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->passed());
  int checked = 0;
  for (const CheckResult& c : report->checks) {
    if (!c.name.ends_with(".allocations")) continue;
    ++checked;
    EXPECT_EQ(c.outcome, Outcome::kUnsupported) << c.name;
    EXPECT_EQ(c.reason, "this program does not see allocations") << c.name;
  }
  EXPECT_EQ(checked, 4);
}

}  // namespace
}  // namespace mge::conform
