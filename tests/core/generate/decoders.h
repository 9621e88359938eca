// SPDX-License-Identifier: Apache-2.0
// Small decoders with pseudo-random weights, whose next token depends on all earlier ones.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/session.h"
#include "core/generate/generator.h"
#include "gmock/gmock.h"

namespace mge {

// One layer of attention over caches of keys and values. The mask states the number of tokens.
inline constexpr char kAttentionDecoder[] = R"(
input input_ids : int64[1,S]
input attention_mask : int64[1,T]
input past_key_values.0.key : float32[B,1,N,8]
input past_key_values.0.value : float32[B,1,N,8]
const table = float32[20,16]<0.5>
const wq = float32[16,16]<0.5>
const wk = float32[16,8]<0.5>
const wv = float32[16,8]<0.5>
const head = float32[16,20]<0.5>
const axis = int64[1]<1>
const one = int64[1]<1>
const second = int64[]<1>
x = Gather(table, input_ids) {axis=0}
q = MatMul(x, wq)
k = MatMul(x, wk)
v = MatMul(x, wv)
count = ReduceSum(attention_mask, axis) {keepdims=0}
less = Sub(count, one)
last = Cast(less) {to=6}
shape = Shape(attention_mask)
t = Gather(shape, second) {axis=0}
total = Cast(t) {to=6}
y, present.0.key, present.0.value = com.microsoft::GroupQueryAttention(q, k, v, past_key_values.0.key, past_key_values.0.value, last, total) {num_heads=2,kv_num_heads=1}
z = Sub(y, x)
logits = MatMul(z, head)
output logits
output present.0.key
output present.0.value
)";

// The same with attention to the six latest tokens. `keeps`: the cache holds only them.
inline std::string WindowDecoder(bool keeps) {
  std::string text = kAttentionDecoder;
  const std::string heads = "{num_heads=2,kv_num_heads=1";
  text.insert(text.find(heads) + heads.size(),
              keeps ? ",local_window_size=6,sliding_window_cache=1" : ",local_window_size=6");
  return text;
}

// A convolution over the last four tokens, which are its state, and positions.
inline constexpr char kConvolutionDecoder[] = R"(
input input_ids : int32[1,S]
input position_ids : int64[1,S]
input past_conv.3 : float32[B,16,4]
const table = float32[20,16]<0.5>
const filter = float32[16,1,5]<0.5>
const head = float32[16,20]<0.5>
const from = int64[1]<-4>
const to = int64[1]<2147483647>
const axis = int64[1]<2>
const places = float32[512,16]<0.5>
e = Gather(table, input_ids) {axis=0}
p = Gather(places, position_ids) {axis=0}
x = Add(e, p)
columns = Transpose(x) {perm=[0,2,1]}
all = Concat(past_conv.3, columns) {axis=2}
present_conv.3 = Slice(all, from, to, axis)
c = Conv(all, filter) {group=16,kernel_shape=[5]}
rows = Transpose(c) {perm=[0,2,1]}
logits = MatMul(rows, head)
output logits
output present_conv.3
)";

inline std::shared_ptr<Runtime> CpuRuntime(std::vector<Assignment> settings = {}) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  options.sources.call = std::move(settings);
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  return *runtime;
}

// Returns a session of the model, with other numbers in its floating-point constants.
inline std::shared_ptr<Session> DecoderSession(std::shared_ptr<Runtime> runtime, const char* text,
                                               const std::string& device = "cpu0") {
  onnx::Model model;
  model.graph = *ParseGraphText(text);
  uint32_t state = 1;
  for (ValueId v = 0; v < model.graph.value_count(); ++v) {
    Tensor& t = model.graph.value(v).constant;
    if (model.graph.value(v).role != Role::kConstant || t.dtype() != DType::kF32) continue;
    std::vector<float> numbers(static_cast<size_t>(t.elements()));
    for (float& x : numbers) x = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) / 8388608 - 1;
    t = Tensor::Of<float>(t.shape(), numbers);
  }
  auto session = Session::Create(std::move(runtime), std::move(model), {.device = device, .outputs_on_device = true});
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return session.ok() ? *session : nullptr;
}

inline GenerationConfig DecoderConfig(bool shared, int64_t chunk = 512) {
  GenerationConfig config;
  config.vocabulary = 20;
  config.context = 500;
  config.kv_heads = 1;
  config.head_size = 8;
  config.shared_cache = shared;
  config.chunk = chunk;
  config.seeded = true;
  config.caches = {{"past_key_values.%d.key", "present.%d.key"},
                   {"past_key_values.%d.value", "present.%d.value"},
                   {"past_conv.%d", "present_conv.%d"}};
  return config;
}

inline std::unique_ptr<Generator> Make(std::shared_ptr<Session> session, GenerationConfig config, int64_t max_length = 0) {
  auto generator = Generator::Create(std::move(session), std::move(config), max_length);
  EXPECT_TRUE(generator.ok()) << FormatError(generator.status());
  return generator.ok() ? *std::move(generator) : nullptr;
}

// Returns the sequence after `count` more tokens.
inline std::vector<int64_t> Continue(Generator& generator, int count) {
  for (int i = 0; i < count; ++i) {
    const auto next = generator.Next();
    EXPECT_TRUE(next.ok()) << FormatError(next.status());
    if (!next.ok()) break;
  }
  return generator.tokens();
}

}  // namespace mge
