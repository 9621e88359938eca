// SPDX-License-Identifier: Apache-2.0
// The runner of the passes. What they make of graphs is in tests/plans.
#include "core/plan/pass.h"

#include "core/base/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kText[] =
    "input x : float32[4]\nconst eight = float32[]<8>\nd = Div(x, eight)\ni = Identity(d)\ny = Relu(i)\noutput y\n";

TEST(Passes, LogNamesEachRewriteThatChangedSomething) {
  auto graph = ParseGraphText(kText);
  ASSERT_TRUE(graph.ok());
  std::vector<std::string> log;
  ASSERT_TRUE(RunPasses(*graph, {.allocator = &UnlimitedHostAllocator()}, &log).ok());
  EXPECT_THAT(log, Contains("remove_identities: 1 changes"));
  EXPECT_THAT(log, Contains("div_by_constant: 1 changes"));
  EXPECT_THAT(log, Not(Contains(HasSubstr("gelu"))));
}

TEST(Passes, TraceSeesTheGraphAfterEveryPassThatChangedIt) {
  auto graph = ParseGraphText(kText);
  ASSERT_TRUE(graph.ok());
  std::vector<std::string> seen;
  PassContext context = {.allocator = &UnlimitedHostAllocator(),
                         .trace = [](void* self, std::string_view pass, int changes, const Graph& now) {
                           EXPECT_GT(changes, 0);
                           EXPECT_TRUE(VerifyGraph(now).ok());
                           static_cast<std::vector<std::string>*>(self)->emplace_back(pass);
                         },
                         .trace_self = &seen};
  ASSERT_TRUE(RunPasses(*graph, context, nullptr).ok());
  EXPECT_THAT(seen, ::testing::ElementsAre("remove_identities", "rewrite"));
}

TEST(Passes, SkippedNamesMustExist) {
  EXPECT_TRUE(CheckSkippedNames(std::vector<std::string>{"gelu", "merge_equal", "cpu.elementwise_chain"}).ok());
  absl::Status wrong = CheckSkippedNames(std::vector<std::string>{"gelu", "fold_constant"});
  EXPECT_EQ(ErrorId(wrong), errors::kBadSetting.id);
  EXPECT_THAT(FormatError(wrong), HasSubstr("'fold_constant'"));
  EXPECT_THAT(FormatError(wrong), HasSubstr("fold_constants"));
}

}  // namespace
}  // namespace mge
