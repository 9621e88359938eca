// SPDX-License-Identifier: Apache-2.0
// Runs a chain of elementwise functions in one pass over memory. All threads of a warp take the same branches.
#include "plugins/gpu/kernels/binary_functions.h"
#include "plugins/gpu/kernels/chain.h"
#include "plugins/gpu/kernels/quantization.h"
#include "plugins/gpu/kernels/unary_functions.h"

namespace mge::gpu {

// Values of 8-bit integers are floats, too.
GPU_DEVICE float ReadValue(const void* from, ChainType type, int64_t i) {
  switch (type) {
    case kChainU8: return static_cast<const uint8_t*>(from)[i];
    case kChainI8: return static_cast<const int8_t*>(from)[i];
    default: return static_cast<const float*>(from)[i];
  }
}
GPU_DEVICE void WriteValue(void* to, ChainType type, int64_t i, float value) {
  switch (type) {
    case kChainU8: static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(value); break;
    case kChainI8: static_cast<int8_t*>(to)[i] = static_cast<int8_t>(value); break;
    default: static_cast<float*>(to)[i] = value;
  }
}

GPU_DEVICE float Step(const ChainStep& s, float x, float y, float z) {
  switch (s.code) {
#define GPU_CHAIN_CASE(name, Function) \
  case kChain_##name: return Function::template Of<float>(x, s.a, s.b);
    GPU_CHAIN_UNARY(GPU_CHAIN_CASE)
#undef GPU_CHAIN_CASE
#define GPU_CHAIN_CASE(name, Function) \
  case kChain_##name: return Function::template Of<float>(x, y, nullptr);
    GPU_CHAIN_BINARY(GPU_CHAIN_CASE)
#undef GPU_CHAIN_CASE
    case kChainQuantizeToU8: return Quantized<uint8_t, float>(x, y, static_cast<int32_t>(z));
    case kChainQuantizeToI8: return Quantized<int8_t, float>(x, y, static_cast<int32_t>(z));
    case kChainDequantize: return (x - z) * y;
    default: return 0;
  }
}

GPU_DEVICE void Chain(const ChainArgs& args) {
  float values[kMaxChainInputs + kMaxChainSteps];
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    for (int k = 0; k < args.input_count; ++k) {
      const int64_t at = args.walk.rank == 0 ? i * args.steps_of[k] : Offset(args.walk, args.strides[k], i);
      values[k] = ReadValue(args.inputs[k], args.input_types[k], at);
    }
    float last = 0;
    for (int s = 0; s < args.step_count; ++s) {
      const ChainStep& step = args.steps[s];
      last = Step(step, values[step.x], values[step.y], step.z < 0 ? 0.0f : values[step.z]);
      values[args.input_count + s] = last;
    }
    for (int e = 0; e < args.extra_count; ++e) {
      WriteValue(args.extras[e], args.extra_types[e], i, values[args.input_count + args.extra_steps[e]]);
    }
    WriteValue(args.output, args.output_type, i, last);
  }
}

GPU_KERNEL(chain_f32, 256, ChainArgs, Chain)

}  // namespace mge::gpu
