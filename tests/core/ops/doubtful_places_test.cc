// SPDX-License-Identifier: Apache-2.0
// Places where ONNX's reference and the shipped runtimes differ: doubtful_places.md.
#include "tests/core/ops/table_cases.h"

namespace mge {
namespace {

TEST(DoubtfulPlaces, AreDecidedAsTheTableSays) {
  const std::vector<TableCase> cases = ReadTable("doubtful_places.md");
  EXPECT_GT(cases.size(), 30u);
  for (const TableCase& c : cases) {
    CheckCase(c);
    ASSERT_EQ(c.more.size(), 2u) << c.title;
    EXPECT_FALSE(c.more[0].empty() || c.more[1].empty()) << c.title << " has no reason";
  }
}

}  // namespace
}  // namespace mge
