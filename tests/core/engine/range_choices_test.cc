// SPDX-License-Identifier: Apache-2.0
// The contents of plans of ranges: branches, fusions and kernels; and the plans of its own that a signature gets.
#include "gmock/gmock.h"
#include "tests/support/range_sessions.h"

namespace mge {
namespace {

using testing::HasSubstr;

// Other tables for long texts, as models with a long context have. The first branch contains another condition.
constexpr char kTables[] = R"(
input x : float32[B,S,8]
const w = float32[8,8]<0.25>
const one = int64[]<1>
const limit = int64[]<33>
shape = Shape(x)
s = Gather(shape, one) {axis=0}
long = Greater(s, limit)
table, more = If(long) captures(s, s) {then_branch=graph {
capture n
const a = float32[100,8]<0.5>
const far = int64[]<50>
longer = Greater(n, far)
b = If(longer) {then_branch=graph {
const y = float32[1]<3>
output y
}, else_branch=graph {
const z = float32[1]<2>
output z
}}
output a
output b
}, else_branch=graph {
capture n
const c = float32[40,8]<0.25>
const d = float32[1]<1>
output c
output d
}}
const zero = int64[]<0>
ids = Range(zero, s, one)
rows = Gather(table, ids) {axis=0}
p = MatMul(x, w)
q = Add(p, rows)
y = Mul(q, more)
r = Relu(y)
output r
)";

// Rows of an image and their normalisation, as PaddlePaddle writes them: the shape is sliced, and has integers of 32 bits.
constexpr char kFlattened[] = R"(
input x : float32[B,4,1,W]
const zero = int64[1]<0>
const two = int64[1]<2>
const rest = int32[1]<-1>
const axis = int64[1]<-1>
const exponent = float32[]<2>
const epsilon = float32[]<0.00001>
const gamma = float32[4]<1, 2, 3, 4>
const beta = float32[4]<0.5>
shape = Shape(x)
first = Slice(shape, zero, two)
narrow = Cast(first) {to=6}
target = Concat(narrow, rest) {axis=0}
wide = Cast(target) {to=7}
rows = Reshape(x, wide)
t = Transpose(rows) {perm=[0,2,1]}
mean = ReduceMean(t, axis)
centred = Sub(t, mean)
square = Pow(centred, exponent)
variance = ReduceMean(square, axis)
shifted = Add(variance, epsilon)
root = Sqrt(shifted)
normal = Div(centred, root)
scaled = Mul(normal, gamma)
y = Add(scaled, beta)
output y
)";

// A table that follows from the length alone. A plan for a single length computes it once.
constexpr char kTable[] = R"(
input x : float32[1,S]
const zero = int64[]<0>
const one = int64[]<1>
const axis = int64[]<1>
shape = Shape(x)
n = Gather(shape, axis) {axis=0}
places = Range(zero, n, one)
numbers = Cast(places) {to=1}
a = Sin(numbers)
b = Exp(a)
c = Cos(b)
d = Sqrt(b)
e = Mul(c, d)
y = Add(x, e)
output y
)";

// A convolution for which oneDNN would compile code for each size.
constexpr char kPointwise[] = R"(
input x : float32[1,32,H,W]
const w = float32[32,32,1,1]<0.01>
y = Conv(x, w)
output y
)";

// A range on each side of the size at which another branch begins. The range that contains this size needs plans of its own.
TEST(Ranges, HaveTheBranchThatTheirSizesSelect) {
  const auto runtime = CpuRuntime();
  auto ranges = Make(runtime, kTables), exact = Make(runtime, kTables, {{"plan.ranges", "off"}});
  for (int64_t n = 20; n <= 70; ++n) {
    const std::vector<HostValue> inputs = {Numbers({1, n, 8})};
    EXPECT_EQ(*ResultsOf(*ranges, inputs), *ResultsOf(*exact, inputs)) << n;
    const bool alone = n < 22 || (n >= 29 && n <= 36) || (n >= 47 && n <= 58);
    EXPECT_TRUE(alone || IsOfARange(*ranges)) << n;
  }
}

TEST(Ranges, FuseNodesBehindAShapeThatIsSliced) {
  const auto runtime = CpuRuntime();
  auto ranges = Make(runtime, kFlattened), exact = Make(runtime, kFlattened, {{"plan.ranges", "off"}});
  for (const int64_t n : {60, 61, 62, 63}) {
    const std::vector<HostValue> inputs = {Numbers({n % 2 + 1, 4, 1, n})};
    EXPECT_EQ(*ResultsOf(*ranges, inputs), *ResultsOf(*exact, inputs)) << n;
  }
  ASSERT_TRUE(IsOfARange(*ranges)) << ranges->last_plan()->report.why_own;
  EXPECT_THAT(PlanText(*ranges->last_plan(), false), HasSubstr("LayerNormalization"));
}

TEST(Ranges, LeaveASignatureThatRunsOftenToAPlanOfItsOwn) {
  const auto runtime = CpuRuntime();
  auto ranges = Make(runtime, kTable), exact = Make(runtime, kTable, {{"plan.ranges", "off"}});
  for (const int64_t n : {2000, 2001}) ASSERT_TRUE(ResultsOf(*ranges, {Numbers({1, n})}).ok());
  const std::vector<HostValue> inputs = {Numbers({1, 2002})}, others = {Numbers({1, 2003})};
  const auto want = *ResultsOf(*exact, inputs);
  int runs = 0;
  do {
    const auto got = *ResultsOf(*ranges, inputs);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5);
  } while (IsOfARange(*ranges) && ++runs < 10000);
  EXPECT_GT(runs, 0);
  EXPECT_FALSE(IsOfARange(*ranges));
  EXPECT_THAT(PlanText(*ranges->last_plan(), true), HasSubstr("for these sizes only: they had so many runs"));
  ASSERT_TRUE(ResultsOf(*ranges, others).ok());
  EXPECT_TRUE(IsOfARange(*ranges));
  EXPECT_THAT(PlanText(*ranges->last_plan(), true), HasSubstr("for these sizes only after"));
  ASSERT_TRUE(ResultsOf(*ranges, inputs).ok());
  EXPECT_FALSE(IsOfARange(*ranges));
}

TEST(Ranges, PreferKernelsThatCompileNothingForANewSize) {
  auto session = Make(CpuRuntime(), kPointwise);
  for (const int64_t n : {60, 61, 62, 63}) ASSERT_TRUE(ResultsOf(*session, {Numbers({1, 32, 60, n})}).ok());
  ASSERT_TRUE(IsOfARange(*session)) << session->last_plan()->report.why_own;
  for (const Unit& unit : session->last_plan()->units) EXPECT_FALSE(unit.attributes & MGE_KERNEL_COMPILES) << unit.kernel;
}

}  // namespace
}  // namespace mge
