// SPDX-License-Identifier: Apache-2.0
#include "core/base/lines.h"

#include "gtest/gtest.h"

namespace mge {
namespace {

TEST(OneLine, JoinsTheLinesOfAText) {
  EXPECT_EQ(OneLine("kernel.cu(3): error\n    identifier \"x\" is undefined\r\n\n1 error\n"),
            "kernel.cu(3): error | identifier \"x\" is undefined | 1 error");
  EXPECT_EQ(OneLine("one line"), "one line");
  EXPECT_EQ(OneLine(" \n\t\n"), "");
  EXPECT_EQ(OneLine(""), "");
  EXPECT_EQ(OneLine("a\x1b[31m\nb"), "a\\x1b[31m | b");
}

}  // namespace
}  // namespace mge
