// SPDX-License-Identifier: Apache-2.0
#include "core/base/byte_size.h"

#include <gtest/gtest.h>

namespace mge {
namespace {

TEST(ByteSize, DistinguishesMegabytesFromMebibytes) {
  EXPECT_EQ(ParseByteSize("64MB"), 64'000'000);
  EXPECT_EQ(ParseByteSize("64MiB"), 64 << 20);
  EXPECT_EQ(ParseByteSize("64M"), 64 << 20);
  EXPECT_EQ(ParseByteSize("1.5 kb"), 1500);
  EXPECT_EQ(ParseByteSize("1.5k"), 1536);
  EXPECT_EQ(ParseByteSize("2tb"), 2'000'000'000'000);
}

TEST(ByteSize, AcceptsPlainBytes) {
  EXPECT_EQ(ParseByteSize("4096"), 4096);
  EXPECT_EQ(ParseByteSize("4096B"), 4096);
  EXPECT_EQ(ParseByteSize("0"), 0);
}

TEST(ByteSize, RefusesTextsThatAreNotASize) {
  for (const char* text :
       {"", "MB", "-1", "1.5", "1.5b", "1e3", "64mbs", "64Mi", "9999999999G", "1..5k", "64 m b", "0x10"}) {
    EXPECT_EQ(ParseByteSize(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace mge
