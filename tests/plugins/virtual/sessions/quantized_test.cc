// SPDX-License-Identifier: Apache-2.0
// Quantized models in the three forms that exporters write. All of their steps have kernels.
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

// Operators of floats between pairs of QuantizeLinear and DequantizeLinear.
constexpr char kPairs[] = R"(input x : float32[2,3,9,8]
const s = float32[]<0.02>
const z = uint8[]<120>
const w = int8[16,3,3,3]<7>
const ws = float32[16]<0.01>
const wz = int8[16]<0>
const f = int8[16,5]<-9>
a = QuantizeLinear(x, s, z)
b = DequantizeLinear(a, s, z)
v = DequantizeLinear(w, ws, wz) {axis=0}
c = Conv(b, v) {pads=[1,1,1,1], kernel_shape=[3,3]}
d = Relu(c)
e = QuantizeLinear(d, s, z)
g = DequantizeLinear(e, s, z)
h = GlobalAveragePool(g)
i = Flatten(h)
j = QuantizeLinear(i, s, z)
k = DequantizeLinear(j, s, z)
u = DequantizeLinear(f, s)
y = MatMul(k, u)
output y
)";

// Operators of integers.
constexpr char kIntegers[] = R"(input x : float32[2,4,9,8]
const s = float32[]<0.02>
const z = uint8[]<120>
const w = int8[16,4,3,3]<7>
const ws = float32[16]<0.01>
const wz = int8[16]<-3>
const bias = int32[16]<500>
const d = int8[16,1,3,3]<-6>
const shape = int64[2]<2, 1152>
const f = int8[1152,5]<9>
const fz = int8[]<2>
a = QuantizeLinear(x, s, z)
b = QLinearConv(a, s, z, w, ws, wz, s, z, bias) {pads=[1,1,1,1]}
c = QLinearConv(b, s, z, d, ws, wz, s, z) {pads=[1,1,1,1], group=16}
r = Reshape(c, shape)
m = QLinearMatMul(r, s, z, f, s, fz, s, z)
y = DequantizeLinear(m, s, z)
output y
)";

// Products of integers whose scales are found in the run.
constexpr char kDynamic[] = R"(input x : float32[2,7,64]
const w = int8[64,32]<11>
const z = int8[]<1>
const s = float32[]<0.03>
q, qs, qz = DynamicQuantizeLinear(x)
m = MatMulInteger(q, w, qz, z)
c = Cast(m) {to=1}
t = Mul(qs, s)
y = Mul(c, t)
output y
)";

TEST(Quantized, ModelsRunByKernelsAlone) {
  const std::pair<const char*, std::vector<HostValue>> models[] = {
      {kPairs, {Numbers({2, 3, 9, 8})}}, {kIntegers, {Numbers({2, 4, 9, 8})}}, {kDynamic, {Numbers({2, 7, 64})}}};
  auto runtime = NewRuntime({{"virtual.devices", "1"}, {"virtual.poison", "1"}});
  ASSERT_NE(runtime, nullptr);
  for (const auto& [text, in] : models) {
    SCOPED_TRACE(text);
    auto host = Load(runtime, text, "host"), session = Load(runtime, text, "virtual0");
    ASSERT_TRUE(host.ok()) << FormatError(host.status());
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    auto expected = ResultsOf(**host, in), got = ResultsOf(**session, in);
    ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_THAT(*got, testing::Pointwise(testing::FloatNear(1e-4f), *expected));
    EXPECT_EQ((*session)->last_plan()->report.reference_steps, 0) << PlanText(*(*session)->last_plan(), true);
  }
}

}  // namespace
}  // namespace mge
