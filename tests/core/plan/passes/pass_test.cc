// SPDX-License-Identifier: Apache-2.0
// The runner of the passes. tests/plans tests the graphs that the passes produce.
#include "core/plan/passes/pass.h"

#include "core/base/errors.h"
#include "fmt/format.h"
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
                         .trace =
                             [](void* self, std::string_view pass, int changes, const Graph& now) {
                               EXPECT_GT(changes, 0);
                               EXPECT_TRUE(VerifyGraph(now).ok());
                               static_cast<std::vector<std::string>*>(self)->emplace_back(pass);
                             },
                         .trace_self = &seen};
  ASSERT_TRUE(RunPasses(*graph, context, nullptr).ok());
  EXPECT_THAT(seen, ::testing::ElementsAre("remove_identities", "rewrite"));
}

// An allocator that counts its bytes and fails beyond a limit.
class Purse : public HostAllocator {
 public:
  explicit Purse(int64_t limit) : limit_(limit) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
    if (bytes > limit_ - given) return Fail(errors::kOverBudget, "the purse is empty");
    given += bytes;
    return UnlimitedHostAllocator().Allocate(bytes);
  }
  int64_t given = 0;

 private:
  int64_t limit_;
};

TEST(Passes, RewritesAllocateConstantsFromTheGivenAllocator) {
  constexpr char kConv[] = R"(
input x : float32[1,2,4,4]
const w = float32[2,2,3,3]<1>
const s = float32[2]<2>
const b = float32[2]<3>
const m = float32[2]<4>
const v = float32[2]<5>
c = Conv(x, w)
y = BatchNormalization(c, s, b, m, v)
output y
)";
  auto graph = ParseGraphText(kConv), poor = ParseGraphText(kConv);
  Purse purse(1 << 20), empty(0);
  std::vector<std::string> log;
  ASSERT_TRUE(RunPasses(*graph, {.allocator = &purse}, &log).ok());
  EXPECT_THAT(log, Contains("conv_batchnorm: 1 changes"));
  EXPECT_GE(purse.given, (2 * 2 * 9 + 2) * 4);
  // Without memory for the constants the rewrite does not apply.
  absl::Status status = RunPasses(*poor, {.allocator = &empty}, nullptr);
  EXPECT_TRUE(status.ok()) << FormatError(status);
  EXPECT_EQ(poor->node_count(), 2);
}

TEST(Passes, SkippedNamesMustExist) {
  EXPECT_TRUE(CheckSkippedNames(std::vector<std::string>{"gelu", "merge_equal", "cpu.elementwise_chain"}).ok());
  absl::Status wrong = CheckSkippedNames(std::vector<std::string>{"gelu", "fold_constant"});
  EXPECT_EQ(ErrorId(wrong), errors::kBadSetting.id);
  EXPECT_THAT(FormatError(wrong), HasSubstr("'fold_constant'"));
  EXPECT_THAT(FormatError(wrong), HasSubstr("fold_constants"));
}

TEST(Passes, FoldingStopsWhenItsRunIsCancelled) {
  constexpr char kProduct[] = "const a = float32[4,4]<1>\nconst b = float32[4,4]<2>\ny = MatMul(a, b)\noutput y\n";
  StopControl stop;
  stop.cancel = kStopAsked;
  auto graph = ParseGraphText(kProduct);
  ASSERT_TRUE(graph.ok());
  const PassContext context = {.allocator = &UnlimitedHostAllocator(), .stop = &stop};
  EXPECT_EQ(ErrorId(RunPasses(*graph, context, nullptr)), errors::kCancelled.id);
}

// Doubles a constant of 16 bytes `times` times.
std::string Doubled(int times) {
  std::string text = "input x : float32[2]\nconst v = float32[4]<1>\nv0 = Concat(v, v) {axis=0}\n";
  for (int i = 1; i < times; ++i) text += fmt::format("v{} = Concat(v{}, v{}) {{axis=0}}\n", i, i - 1, i - 1);
  return text + fmt::format("s = ReduceSum(v{}) {{keepdims=0}}\ny = Add(s, x)\noutput y\n", times - 1);
}

TEST(Passes, FoldingIsLimitedByTheBytesOfTheModel) {
  auto graph = ParseGraphText(Doubled(28));
  ASSERT_TRUE(graph.ok()) << graph.status();
  Purse purse(int64_t{1} << 40);
  ASSERT_TRUE(RunPasses(*graph, {.allocator = &purse, .fold_bytes = 4096}, nullptr).ok());
  EXPECT_LE(purse.given, 2 * 4096 + 1024);
  EXPECT_LE(ConstantBytes(*graph), 4096 + 4 * 16);
  EXPECT_GT(graph->node_count(), 15) << "the rest is computed at run time";
}

TEST(Passes, FoldingFreesTheConstantsThatItReads) {
  // Each of 40 steps makes a constant as large as the first one, which is more than may be added in all.
  std::string text = "input x : float32[256]\nconst v = float32[256]<1>\nv0 = Neg(v)\n";
  for (int i = 1; i < 40; ++i) text += fmt::format("v{} = Sin(v{})\n", i, i - 1);
  auto graph = ParseGraphText(text + "y = Add(v39, x)\noutput y\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(RunPasses(*graph, {.allocator = &UnlimitedHostAllocator(), .fold_bytes = 0}, nullptr).ok());
  EXPECT_EQ(graph->node_count(), 1);
}

TEST(Passes, FoldingLeavesLongComputationsToTheRun) {
  auto graph = ParseGraphText(
      "input x : float32[1200,1200]\nconst a = float32[1200,1200]<1>\nb = MatMul(a, a)\ny = Add(b, x)\noutput y\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(RunPasses(*graph, {.allocator = &UnlimitedHostAllocator()}, nullptr).ok());
  EXPECT_EQ(graph->node_count(), 2);
}

TEST(Passes, EachPassStopsWhenItsRunIsCancelled) {
  StopControl stop;
  stop.cancel = kStopAsked;
  for (const Pass& pass : AllPasses()) {
    if (pass.name == "remove_identities" || pass.name == "merge_transposes" || pass.name == "merge_equal" ||
        pass.name == "remove_dead" || pass.name == "expand_functions") {
      continue;  // they only walk over the graph, and the next pass checks
    }
    auto graph = ParseGraphText("input x : float32[2]\nconst a = float32[2]<1>\nb = Neg(a)\ny = Add(b, x)\noutput y\n");
    ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
    FoldLimits limits = {.bytes = 1 << 20};
    int64_t denied = 0;
    const PassContext context = {
        .allocator = &UnlimitedHostAllocator(), .denied_bytes = &denied, .fold_limits = &limits, .stop = &stop};
    EXPECT_EQ(ErrorId(pass.run(*graph, context).status()), errors::kCancelled.id) << pass.name;
  }
}

}  // namespace
}  // namespace mge
