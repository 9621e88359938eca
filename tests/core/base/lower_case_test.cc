// SPDX-License-Identifier: Apache-2.0
#include "core/base/lower_case.h"

#include "gtest/gtest.h"

namespace mge {
namespace {

TEST(LowerCase, ChangesTheLettersOfAsciiOnly) {
  EXPECT_EQ(LowerCase("[AZaz@`{]-09 \xC3\x84"), "[azaz@`{]-09 \xC3\x84");
  EXPECT_EQ(LowerCase(""), "");
}

}  // namespace
}  // namespace mge
