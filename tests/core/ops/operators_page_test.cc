// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reports/operators_page.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

TEST(OperatorsPage, IsFresh) {
  const std::string path = MGE_SOURCE_DIR "/sdk/OPERATORS.md", page = OperatorsMarkdown();
  const char* update = std::getenv("MGE_TEST_UPDATE");
  if (update != nullptr && std::string_view(update) == "1") {
    std::ofstream(path, std::ios::binary) << page;
    return;
  }
  std::stringstream present;
  present << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_TRUE(present.str() == page) << path << " is stale; MGE_TEST_UPDATE=1 " << MGE_BINARY_DIR
                                     << "/tests/test_core_ops --gtest_filter='OperatorsPage.*' writes it anew";
}

TEST(OperatorsPage, ListsOnlyOperatorsThatBackendsAreOffered) {
  const std::string page = OperatorsMarkdown();
  for (const OpDef* op : AllOps()) {
    std::string head = "### " + (op->domain.empty() ? "" : std::string(op->domain) + "::") + std::string(op->name) + "\n";
    EXPECT_EQ(page.find(head) == std::string::npos, op->Is(kHostOnly)) << head;
  }
  EXPECT_EQ(page.find("`_"), std::string::npos);  // attributes internal to the host
  EXPECT_THAT(page, testing::HasSubstr("- inputs: `X`: floating; `W`: floating; `R`: floating; `B` (optional): floating"));
}

}  // namespace
}  // namespace mge
