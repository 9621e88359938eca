// SPDX-License-Identifier: Apache-2.0
// Plans of ranges of sizes: which sizes share decisions, and that they compute what plans of their own compute.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/plan/ranges/range_plans.h"
#include "gmock/gmock.h"
#include "tests/support/range_sessions.h"

namespace mge {
namespace {

using testing::HasSubstr;

// One step of a decoder: the cache of n entries and the mask of n + 1 grow together.
constexpr char kDecoder[] = R"(
input past : float32[B,2,P,4]
input fresh : float32[B,2,1,4]
input mask : float32[B,T]
present = Concat(past, fresh) {axis=2}
keys = Transpose(present) {perm=[0,1,3,2]}
scores = MatMul(fresh, keys)
const axes = int64[2]<1,2>
wide = Unsqueeze(mask, axes)
masked = Add(scores, wide)
weights = Softmax(masked) {axis=-1}
mixed = MatMul(weights, present)
output mixed
output present
)";

// Shapes that are computed, as exporters write them: the sizes go through Shape, Gather, Concat and Reshape.
constexpr char kReshapes[] = R"(
input x : float32[B,S,8]
const w = float32[8,8]<0.25>
const two = int64[1]<2>
const four = int64[1]<4>
const zero = int64[]<0>
const one = int64[]<1>
const axis = int64[1]<0>
p = MatMul(x, w)
shape = Shape(x)
b = Gather(shape, zero) {axis=0}
s = Gather(shape, one) {axis=0}
b1 = Unsqueeze(b, axis)
s1 = Unsqueeze(s, axis)
split = Concat(b1, s1, two, four) {axis=0}
heads = Reshape(p, split)
t = Transpose(heads) {perm=[0,2,1,3]}
r = Relu(t)
output r
)";

// Pads that follow from the size: they differ for odd and even sizes.
constexpr char kSame[] = R"(
input x : float32[1,2,H,W]
const w = float32[3,2,3,3]<0.125>
c = Conv(x, w) {auto_pad="SAME_UPPER",strides=[2,2]}
m = MaxPool(c) {auto_pad="SAME_LOWER",kernel_shape=[2,2],strides=[3,3]}
output c
output m
)";

// Slices, Split and Pad whose bounds follow from the size.
constexpr char kHalves[] = R"(
input x : float32[1,S,8]
const w = float32[8,8]<0.1>
const zero = int64[1]<0>
const one = int64[1]<1>
const two = int64[1]<2>
shape = Shape(x)
n = Slice(shape, one, two)
half = Div(n, two)
rest = Sub(n, half)
first = Slice(x, zero, half, one)
second = Slice(x, half, n, one)
a = MatMul(first, w)
b = MatMul(second, w)
swapped = Concat(b, a) {axis=1}
sizes = Concat(half, rest) {axis=0}
p, q = Split(swapped, sizes) {axis=1}
r = Relu(p)
t = Tanh(q)
pads = Concat(zero, zero, zero, zero, half, zero) {axis=0}
padded = Pad(r, pads)
output swapped
output t
output padded
)";

// An image that is made smaller, and larger again to the size that it had.
constexpr char kPyramid[] = R"(
input x : float32[1,2,H,W]
const w1 = float32[4,2,3,3]<0.05>
const w2 = float32[2,4,3,3]<0.03>
const w3 = float32[2,6,3,3]<0.02>
const bias = float32[4]<0.1>
const zero = int64[1]<0>
const two = int64[1]<2>
const four = int64[1]<4>
a = Conv(x, w1, bias) {pads=[1,1,1,1]}
r = Relu(a)
p = MaxPool(r) {kernel_shape=[2,2],strides=[2,2]}
c = Conv(p, w2) {pads=[1,1,1,1]}
large = Shape(r)
small = Shape(c)
size = Slice(large, two, four)
channels = Slice(small, zero, two)
to = Concat(channels, size) {axis=0}
u = Resize(c, _, _, to) {mode="nearest"}
both = Concat(u, r) {axis=1}
d = Conv(both, w3) {pads=[1,1,1,1]}
y = Add(d, x)
output y
)";

// The last part has one element for the largest size of a range, and more for some others.
constexpr char kParts[] = R"(
input x : float32[A,3,C]
a, b, c, d, e = Split@20(x) {axis=2,num_outputs=5}
output e
output a
)";

// Pairs of nodes that have one problem while A and B are equal.
constexpr char kPairs[] = R"(
input x : float32[A,8]
input y : float32[B,8]
const w = float32[8,8]<0.25>
s = Softmax(x) {axis=0}
t = Softmax(y) {axis=0}
u = MatMul(s, w)
v = MatMul(t, w)
p = Transpose(u)
q = Transpose(v)
output p
output q
)";

// Attention with a cache. Two heads share each head of keys, and a window hides early keys.
constexpr char kAttention[] = R"(
input q : float32[B,T,16]
input k : float32[B,T,8]
input v : float32[B,T,8]
input mask : float32[B,1,T,K]
input past_key : float32[B,2,P,4]
input past_value : float32[B,2,P,4]
y, key, value = Attention(q, k, v, mask, past_key, past_value) {q_num_heads=4,kv_num_heads=2,is_causal=1,left_window_size=9}
output y
output key
output value
)";

// The same without a mask and a window, for operands with an axis of heads.
constexpr char kHeads[] = R"(
input q : float32[B,4,T,4]
input k : float32[B,2,T,4]
input v : float32[B,2,T,4]
input mask : float32[B,1,T,K]
input past_key : float32[B,2,P,4]
input past_value : float32[B,2,P,4]
y, key, value = Attention(q, k, v, _, past_key, past_value) {is_causal=1}
total = Add(mask, mask)
output y
output key
output value
output total
)";

// Attention with rotated queries as ONNX Runtime's tools write it, and a second one to keys that do not change.
constexpr char kMultiHead[] = R"(
input q : float32[B,T,8]
input k : float32[B,T,8]
input v : float32[B,T,8]
input mask : float32[B,1,T,K]
input past_key : float32[B,2,P,4]
input past_value : float32[B,2,P,4]
input positions : int64[B,T]
const cos = float32[80,2]<0.6>
const sin = float32[80,2]<0.8>
r = com.microsoft::RotaryEmbedding(q, positions, cos, sin) {num_heads=2}
a, key, value = com.microsoft::MultiHeadAttention(r, k, v, _, _, mask, past_key, past_value) {num_heads=2}
y = com.microsoft::MultiHeadAttention(a, past_key, past_value) {num_heads=2}
output y
output key
output value
)";

// A convolution whose cache is its state.
constexpr char kState[] = R"(
input x : float32[B,3,L]
input past : float32[B,3,3]
const w = float32[3,1,4]<0.25>
y, present = com.microsoft::CausalConvWithState(x, w, _, past) {activation="silu"}
output y
output present
)";

std::vector<HostValue> DecoderInputs(int64_t n, int64_t batch = 1) {
  return {Numbers({batch, 2, n, 4}, 1), Numbers({batch, 2, 1, 4}, 2), Numbers({batch, n + 1}, 3)};
}
std::vector<HostValue> TextInputs(int64_t n) { return {Numbers({n % 3 + 1, n, 8})}; }
std::vector<HostValue> ImageInputs(int64_t n) { return {Numbers({1, 2, n, n + n % 4})}; }

std::vector<HostValue> RowInputs(int64_t n) { return {Numbers({1, n, 8})}; }
std::vector<HostValue> PyramidInputs(int64_t n) { return {Numbers({1, 2, n, n + 1})}; }

std::vector<HostValue> PartInputs(int64_t n) { return {Numbers({n / 3 + 1, 3, n})}; }

std::vector<HostValue> PairInputs(int64_t n) { return {Numbers({n, 8}, 1), Numbers({n - n % 3, 8}, 2)}; }

// `q_size` is the size of all heads of queries of a token. The cache has `n` rows.
std::vector<HostValue> AttentionInputs(int64_t n, bool in_rows, int64_t q_size) {
  const int64_t batch = n % 2 + 1, tokens = n % 3 + 1;
  const auto operand = [&](int64_t heads, int seed) {
    return in_rows ? Numbers({batch, tokens, heads * 4}, seed) : Numbers({batch, heads, tokens, 4}, seed);
  };
  return {operand(q_size / 4, 1),
          operand(2, 2),
          operand(2, 3),
          Numbers({batch, 1, tokens, n + tokens}, 4),
          Numbers({batch, 2, n, 4}, 5),
          Numbers({batch, 2, n, 4}, 6)};
}
std::vector<HostValue> RowAttentionInputs(int64_t n) { return AttentionInputs(n, true, 16); }
std::vector<HostValue> HeadAttentionInputs(int64_t n) { return AttentionInputs(n, false, 16); }
std::vector<HostValue> MultiHeadInputs(int64_t n) {
  std::vector<HostValue> out = AttentionInputs(n, true, 8);
  const Shape ids = {n % 2 + 1, n % 3 + 1};
  Tensor positions = *Tensor::Create(DType::kI64, ids);
  int64_t next = n;
  for (int64_t& p : positions.MutableData<int64_t>()) p = next++ % 80;
  out.emplace_back().tensor = std::move(positions);
  return out;
}
std::vector<HostValue> StateInputs(int64_t n) { return {Numbers({n % 2 + 1, 3, n}), Numbers({n % 2 + 1, 3, 3}, 2)}; }

std::vector<int64_t> Shuffled(int64_t first, int64_t last) {
  std::vector<int64_t> sizes;
  for (int64_t n = first; n <= last; ++n) sizes.push_back(n);
  std::shuffle(sizes.begin(), sizes.end(), std::mt19937(7));
  return sizes;
}

TEST(SizeRanges, FollowEachOtherAndEndAtMostAQuarterAboveTheirFirstSize) {
  int64_t next = 0;
  for (int64_t size = 0; size < 5000; ++size) {
    const SizeRange range = SizeRange::Of(size);
    ASSERT_TRUE(range.Has(size));
    ASSERT_LE(4 * range.last, 5 * range.first);
    ASSERT_EQ(range.first == size, size == next);
    if (size == range.last) next = size + 1;
  }
  for (const int64_t alone : std::initializer_list<int64_t>{0, 1, 2, 3, INT64_MAX})
    EXPECT_EQ(SizeRange::Of(alone).last, alone);
}

struct Case {
  const char* name;
  const char* model;
  std::vector<HostValue> (*inputs)(int64_t);
};

class PlansOfARange : public testing::TestWithParam<Case> {};

TEST_P(PlansOfARange, ComputeWhatPlansOfOneSizeCompute) {
  const auto runtime = CpuRuntime();
  for (const char* device : {"cpu0", "host"}) {
    auto ranges = Make(runtime, GetParam().model, {}, device);
    auto exact = Make(runtime, GetParam().model, {{"plan.ranges", "off"}}, device);
    int served = 0;
    for (int round = 0; round < 2; ++round) {
      for (const int64_t n : Shuffled(0, 70)) {
        const std::vector<HostValue> inputs = GetParam().inputs(n);
        auto got = ResultsOf(*ranges, inputs), want = ResultsOf(*exact, inputs);
        ASSERT_EQ(got.ok(), want.ok()) << n << " " << FormatError(got.ok() ? want.status() : got.status());
        if (!want.ok()) continue;
        ASSERT_EQ(got->size(), want->size()) << n;
        for (size_t i = 0; i < want->size(); ++i) ASSERT_NEAR((*got)[i], (*want)[i], 1e-5) << device << " " << n << " " << i;
        served += IsOfARange(*ranges);
        EXPECT_FALSE(IsOfARange(*exact));
      }
    }
    EXPECT_GT(served, 50) << device;  // some kernels of convolutions serve few sizes
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PlansOfARange,
                         testing::Values(Case{"Decoder", kDecoder, [](int64_t n) { return DecoderInputs(n); }},
                                         Case{"ComputedShapes", kReshapes, TextInputs},
                                         Case{"PadsOfTheSize", kSame, ImageInputs},
                                         Case{"ComputedBounds", kHalves, RowInputs},
                                         Case{"ComputedImageSizes", kPyramid, PyramidInputs},
                                         Case{"UnevenParts", kParts, PartInputs}, Case{"EqualProblems", kPairs, PairInputs},
                                         Case{"AttentionWithAWindow", kAttention, RowAttentionInputs},
                                         Case{"AttentionOfHeads", kHeads, HeadAttentionInputs},
                                         Case{"MultiHeadAttention", kMultiHead, MultiHeadInputs},
                                         Case{"StateOfAConvolution", kState, StateInputs}),
                         [](const auto& param) { return param.param.name; });

TEST(Ranges, BeginWithTheThirdSignature) {
  auto session = Make(CpuRuntime(), kReshapes);
  for (const int64_t n : {60, 61, 62, 63}) {
    ASSERT_TRUE(ResultsOf(*session, {Numbers({1, n, 8})}).ok());
    EXPECT_EQ(IsOfARange(*session), n >= 62) << n;
  }
  EXPECT_EQ(session->last_plan()->report.ranges, "x[1,59..73,8]");
  EXPECT_THAT(PlanText(*session->last_plan(), false), HasSubstr("for a range of sizes, x[1,59..73,8]"));
}

TEST(Ranges, KeepTheDistanceOfACacheFromItsMask) {
  auto session = Make(CpuRuntime(), kDecoder);
  for (int64_t n = 20; n <= 30; ++n) ASSERT_TRUE(ResultsOf(*session, DecoderInputs(n)).ok());
  EXPECT_EQ(session->last_plan()->report.ranges, "past[1,2,28..35,4], mask[1,29..36]");
}

TEST(Ranges, AreNotUsedIfTheSettingsSayHowKernelsAreChosen) {
  for (const Settings& settings :
       {Settings{{"plan.ranges", "off"}}, Settings{{"select.strategy", "reproducible"}},
        Settings{{"plan.static_input_shape", "true"}}, Settings{{"debug.check_memory", "true"}}}) {
    auto session = Make(CpuRuntime(), kReshapes, settings);
    for (const int64_t n : {60, 61, 62, 63}) {
      if (!ResultsOf(*session, {Numbers({1, n, 8})}).ok()) continue;  // the shape may not change
      EXPECT_FALSE(IsOfARange(*session)) << n;
    }
  }
}

TEST(Ranges, SayWhySizesHavePlansOfTheirOwn) {
  auto reshapes = Make(CpuRuntime(), kReshapes);
  for (const int64_t n : {1, 2, 3}) ASSERT_TRUE(ResultsOf(*reshapes, {Numbers({1, n, 8})}).ok());
  EXPECT_EQ(reshapes->last_plan()->report.why_own, "no size that varies is in a range of several sizes");
  EXPECT_THAT(PlanText(*reshapes->last_plan(), true), HasSubstr("for these sizes only: no size that varies"));
  auto counted = Make(CpuRuntime(), "input x : float32[N]\nn = NonZero(x)\noutput n\n");
  for (const int64_t n : {60, 61, 62}) {
    RunState control;
    std::vector<HostValue> out(1);
    ASSERT_TRUE(counted->Run(std::vector<HostValue>{Numbers({n})}, out, control).ok());
  }
  EXPECT_THAT(counted->last_plan()->report.why_own, HasSubstr("depend"));
}

TEST(Ranges, LeaveErrorsOfWrongSizesAsTheyAreAndGoOn) {
  const auto runtime = CpuRuntime();
  auto ranges = Make(runtime, kDecoder), exact = Make(runtime, kDecoder, {{"plan.ranges", "off"}});
  for (int64_t n = 20; n <= 30; ++n) ASSERT_TRUE(ResultsOf(*ranges, DecoderInputs(n)).ok());
  std::vector<HostValue> wrong = DecoderInputs(27);
  wrong[2] = Numbers({1, 26}, 3);
  const absl::Status got = ResultsOf(*ranges, wrong).status(), want = ResultsOf(*exact, wrong).status();
  EXPECT_FALSE(got.ok());
  EXPECT_EQ(FormatError(got), FormatError(want));
  for (int64_t n = 26; n <= 33; ++n) {
    EXPECT_EQ(*ResultsOf(*ranges, DecoderInputs(n)), *ResultsOf(*exact, DecoderInputs(n))) << n;
    EXPECT_TRUE(IsOfARange(*ranges)) << n;
  }
}

// The nodes of a range have a constant for r, whose elements are known if there are few of them.
TEST(Ranges, RefuseSizesAsOftenAsTheyAreGiven) {
  const char* model = R"(
input x : float32[N]
input y : float32[M]
const axis = int64[]<0>
const one = int64[]<1>
const last = int64[]<74>
const many = int64[]<150>
shape = Shape(x)
n = Gather(shape, axis)
left = Sub(last, n)
count = Mul(left, many)
r = Range(axis, count, one)
f = Cast(r) {to=1}
z = Relu(y)
output f
output z
)";
  const auto runtime = CpuRuntime();
  auto ranges = Make(runtime, model), exact = Make(runtime, model, {{"plan.ranges", "off"}});
  const std::pair<int64_t, int64_t> sizes[] = {{71, 40}, {72, 41}, {73, 42}, {60, 40}, {60, 41}, {60, 42}, {72, 42}};
  for (const auto& [n, m] : sizes) {
    const std::vector<HostValue> inputs = {Numbers({n}), Numbers({m})};
    auto got = ResultsOf(*ranges, inputs), want = ResultsOf(*exact, inputs);
    ASSERT_TRUE(got.ok() && want.ok()) << n << " " << m;
    EXPECT_EQ(*got, *want) << n << " " << m;
  }
  EXPECT_TRUE(IsOfARange(*ranges));
}

// Sizes that a later node refuses have replaced the kernel of an earlier one, which packs its weights.
TEST(Ranges, GoOnAfterSizesThatSomeNodesRefuse) {
  const char* model = R"(
input x : float32[N,64]
const w = float32[64,64]<0.25>
const axis = int64[1]<0>
const one = int64[1]<1>
const four = int64[1]<4>
const width = int64[1]<64>
const last = int64[1]<66>
shape = Shape(x)
n = Slice(shape, axis, one)
left = Sub(last, n)
rows = Max(left, four)
p = MatMul(x, w)
row = ReduceSum(p, axis)
wide = Concat(rows, width) {axis=0}
e = Expand(row, wide)
s = Sigmoid(e)
y = ReduceSum(s, axis)
output p
output y
)";
  const auto runtime = CpuRuntime();
  auto ranges = Make(runtime, model), exact = Make(runtime, model, {{"plan.ranges", "off"}});
  for (const int64_t n : {70, 71, 72, 60, 73, 61, 69, 68}) {
    EXPECT_EQ(*ResultsOf(*ranges, {Numbers({n, 64})}), *ResultsOf(*exact, {Numbers({n, 64})})) << n;
    EXPECT_EQ(IsOfARange(*ranges), n > 61 && n != 70 && n != 71) << n;
  }
}

TEST(Ranges, RefuseSizesForWhichAValueHasAnotherRank) {
  const char* model = R"(
input x : float32[N]
const first = int64[1]<0>
const one = int64[1]<1>
const four = int64[1]<4>
shape = Shape(x)
n = Slice(shape, first, one)
k = Mod(n, four)
ones = ConstantOfShape(k) {value=int64[1]<1>}
wide = Concat(n, ones) {axis=0}
r = Relu(x)
y = Reshape(r, wide)
output y
)";
  auto session = Make(CpuRuntime(), model);
  for (int64_t n = 60; n <= 73; ++n) {
    std::vector<HostValue> out(1);
    RunState control;
    ASSERT_TRUE(session->Run(std::vector<HostValue>{Numbers({n})}, out, control).ok());
    Shape want = {n};
    want.resize(static_cast<size_t>(1 + n % 4), 1);
    EXPECT_EQ(out[0].tensor.shape(), want);
  }
}

TEST(Ranges, AreMadeAfterARunThatWasStoppedMeanwhile) {
  auto session = Make(CpuRuntime(), kReshapes);
  for (const int64_t n : {60, 61}) ASSERT_TRUE(ResultsOf(*session, {Numbers({1, n, 8})}).ok());
  absl::Status status;
  for (std::chrono::microseconds limit{1};; limit = limit * 5 / 4 + std::chrono::microseconds(1)) {
    RunState control;
    control.deadline = std::chrono::steady_clock::now() + limit;
    status = ResultsOf(*session, {Numbers({1, 62, 8})}, control).status();
    if (ErrorId(status) != errors::kTimeout.id) break;
  }
  EXPECT_TRUE(status.ok()) << FormatError(status);
  EXPECT_TRUE(IsOfARange(*session)) << session->last_plan()->report.why_own;
}

TEST(Ranges, WhoseLargestSizesDoNotFitIntoMemoryLeaveTheSizesThatFit) {
  auto session = Make(CpuRuntime({{"memory.limit", "1MiB"}}),
                      "input x : float32[N]\na = Sigmoid(x)\nb = Cos(a)\nc = Sin(a)\ny = Add(b, c)\noutput y\n");
  const int64_t first = SizeRange::Of(70'000).first;
  for (int64_t n = first; n < first + 6; ++n) {
    auto got = ResultsOf(*session, {Numbers({n})});
    EXPECT_TRUE(got.ok()) << FormatError(got.status());
  }
}

TEST(Ranges, ServeThreadsThatRunDifferentSizesAtTheSameTime) {
  const auto runtime = CpuRuntime();
  auto session = Make(runtime, kDecoder, {{"plan.cache_count", "4"}});
  auto exact = Make(runtime, kDecoder, {{"plan.ranges", "off"}});
  std::vector<std::vector<float>> want;
  for (int64_t n = 0; n <= 50; ++n) want.push_back(*ResultsOf(*exact, DecoderInputs(n)));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 200; ++i) {
        const auto n = static_cast<int64_t>(random() % want.size());
        auto got = ResultsOf(*session, DecoderInputs(n));
        wrong += !got.ok() || !std::ranges::equal(*got, want[static_cast<size_t>(n)],
                                                  [](float a, float b) { return std::abs(a - b) < 1e-5f; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace mge
