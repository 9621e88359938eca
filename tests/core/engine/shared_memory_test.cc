// SPDX-License-Identifier: Apache-2.0
// Runs whose outputs have the memory of inputs, as a cache that grows in place.
#include <cstring>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "gmock/gmock.h"
#include "tests/support/session_values.h"

namespace mge {
namespace {

using testing::HasSubstr;

std::shared_ptr<Session> Cpu(const char* text) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  onnx::Model model;
  model.graph = *ParseGraphText(text);
  auto session = Session::Create(*runtime, std::move(model), {.device = "cpu0"});
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return session.ok() ? *session : nullptr;
}

// Returns a copy of the value in memory of its own.
HostValue Copy(const HostValue& value) {
  HostValue out;
  out.tensor = *Tensor::Create(value.tensor.dtype(), value.tensor.shape());
  std::memcpy(out.tensor.mutable_data(), value.tensor.data(), static_cast<size_t>(value.tensor.bytes()));
  return out;
}

// Runs the session with output `output` in the memory of input `input`, and expects the results of a run with other memory.
// Returns the number of bytes that were copied.
uint64_t RunOver(Session& session, std::vector<HostValue> inputs, size_t output, size_t input) {
  const std::vector<float> want = *ResultsOf(session, inputs);
  inputs[input] = Copy(inputs[input]);
  std::vector<HostValue> out(static_cast<size_t>(session.output_count()));
  out[output] = inputs[input];
  RunState control;
  const uint64_t before = session.staged_bytes();
  const absl::Status status = session.Run(inputs, out, control);
  EXPECT_TRUE(status.ok()) << FormatError(status);
  EXPECT_EQ(out[output].tensor.data(), inputs[input].tensor.data());
  std::vector<float> got;
  for (HostValue& v : out) {
    const auto data = v.tensor.Data<float>();
    got.insert(got.end(), data.begin(), data.end());
  }
  EXPECT_EQ(got, want);
  return session.staged_bytes() - before;
}

TEST(OutputsInTheMemoryOfAnInput, AreWrittenThereIfTheLastReaderComputesInPlace) {
  auto session = Cpu("input x : float32[N]\na = Neg(x)\ny = Add(x, a)\noutput y\n");
  for (const int64_t n : {1, 7, 100}) EXPECT_EQ(RunOver(*session, {Numbers({n})}, 0, 0), 0u);
}

TEST(OutputsInTheMemoryOfAnInput, AreCopiedIfTheInputIsReadLater) {
  auto session = Cpu("input x : float32[N]\ny = Sigmoid(x)\nz = MatMul(x, y)\noutput y\noutput z\n");
  EXPECT_EQ(RunOver(*session, {Numbers({6})}, 0, 0), 6 * sizeof(float));
}

TEST(OutputsInTheMemoryOfAnInput, AreCopiedIfTheKernelMovesElements) {
  auto session = Cpu("input x : float32[N,N]\ny = Transpose(x) {perm=[1,0]}\noutput y\n");
  EXPECT_EQ(RunOver(*session, {Numbers({5, 5})}, 0, 0), 25 * sizeof(float));
}

TEST(OutputsInTheMemoryOfAnInput, AreRefusedIfOnlyPartOfItIsShared) {
  auto session = Cpu("input x : float32[N]\ny = Relu(x)\noutput y\n");
  HostValue whole = Numbers({5});
  std::vector<HostValue> in(1), out(1);
  in[0].tensor = whole.tensor.Within(DType::kF32, {4}, whole.tensor.Data<float>().data());
  out[0].tensor = whole.tensor.Within(DType::kF32, {4}, whole.tensor.Data<float>().data() + 1);
  RunState control;
  const absl::Status status = session->Run(in, out, control);
  EXPECT_EQ(ErrorId(status), errors::kBadInput.id);
  EXPECT_THAT(FormatError(status), HasSubstr("output 'y' is given the memory of input 'x'"));
}

// The attention of a decoder, with caches that have room for N tokens. The mask tells the number of tokens.
constexpr char kDecoder[] = R"(
input q : float32[1,S,16]
input k : float32[1,S,8]
input v : float32[1,S,8]
input past_key : float32[1,1,N,8]
input past_value : float32[1,1,N,8]
input mask : int64[1,T]
const axis = int64[1]<1>
const one = int64[1]<1>
const second = int64[]<1>
count = ReduceSum(mask, axis) {keepdims=0}
less = Sub(count, one)
last = Cast(less) {to=6}
shape = Shape(mask)
t = Gather(shape, second) {axis=0}
total = Cast(t) {to=6}
y, key, value = com.microsoft::GroupQueryAttention(q, k, v, past_key, past_value, last, total) {num_heads=2,kv_num_heads=1}
output y
output key
output value
)";

TEST(Caches, GrowInPlaceTokenByTokenWithoutACopy) {
  auto session = Cpu(kDecoder);
  constexpr int64_t kRoom = 40;
  HostValue key = Numbers({1, 1, kRoom, 8}, 4), value = Numbers({1, 1, kRoom, 8}, 5);  // in place
  HostValue past_key = Copy(key), past_value = Copy(value);                            // a new tensor per token
  for (int64_t n = 0; n < kRoom; ++n) {
    HostValue mask;
    mask.tensor = *Tensor::Create(DType::kI64, {1, n + 1});
    for (int64_t& m : mask.tensor.MutableData<int64_t>()) m = 1;
    const int seed = static_cast<int>(n);
    std::vector<HostValue> inputs = {
        Numbers({1, 1, 16}, seed), Numbers({1, 1, 8}, seed + 1), Numbers({1, 1, 8}, seed + 2), key, value, mask};
    std::vector<HostValue> out = {HostValue(), key, value}, want(3);
    RunState control;
    ASSERT_TRUE(session->Run(inputs, out, control).ok());
    inputs[3] = past_key, inputs[4] = past_value;
    ASSERT_TRUE(session->Run(inputs, want, control).ok());
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(std::ranges::equal(out[i].tensor.Data<float>(), want[i].tensor.Data<float>())) << n << " " << i;
    }
    past_key = want[1], past_value = want[2];
  }
  EXPECT_EQ(session->staged_bytes(), 0u);
}

}  // namespace
}  // namespace mge
