// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/errors.h"

namespace mge {
namespace {

using testing::HasSubstr;

TEST(Budget, IsExactToTheByte) {
  Budget budget("gpu0", 100);
  EXPECT_TRUE(budget.Charge(60).ok());
  EXPECT_TRUE(budget.Charge(40).ok());
  absl::Status status = budget.Charge(1);
  EXPECT_EQ(ErrorId(status), errors::kOverBudget.id);
  EXPECT_THAT(FormatError(status), testing::AllOf(HasSubstr("gpu0"), HasSubstr("1 bytes were asked for"),
                                                  HasSubstr("100 are in use"), HasSubstr("the limit is 100")));
  EXPECT_FALSE(budget.Charge(UINT64_MAX).ok());
  budget.Refund(40);
  EXPECT_EQ(budget.left(), 40u);
  EXPECT_EQ(budget.peak(), 100u);
  budget.ResetPeak();
  EXPECT_EQ(budget.peak(), 60u);
}

TEST(Budget, OnlyCountsIfThereIsNoLimit) {
  Budget budget("cpu0");
  EXPECT_TRUE(budget.Charge(UINT64_MAX / 2).ok());
  EXPECT_EQ(budget.left(), UINT64_MAX);
}

TEST(Budget, HostAllocatorRefundsWhenTheLastViewIsReleased) {
  auto budget = std::make_shared<Budget>("cpu0", 1000);
  BudgetedHostAllocator allocator(budget);
  std::shared_ptr<std::byte> memory = *allocator.Allocate(600);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 64, 0u);
  std::shared_ptr<std::byte> view = memory;
  memory.reset();
  EXPECT_EQ(budget->in_use(), 600u);
  EXPECT_FALSE(allocator.Allocate(401).ok());
  view.reset();
  EXPECT_EQ(budget->in_use(), 0u);
  EXPECT_TRUE(allocator.Allocate(0).ok());
}

}  // namespace
}  // namespace mge
