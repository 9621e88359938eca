// SPDX-License-Identifier: Apache-2.0
// Runs a chain of elementwise functions in one pass over memory. All threads of a warp take the same branches.
#include "plugins/gpu/kernels/binary_functions.h"
#include "plugins/gpu/kernels/chain.h"
#include "plugins/gpu/kernels/unary_functions.h"

namespace mge::gpu {

GPU_DEVICE float Step(const ChainStep& s, float x, float y) {
  switch (s.code) {
#define GPU_CHAIN_CASE(name, Function) \
  case kChain_##name: return Function::template Of<float>(x, s.a, s.b);
    GPU_CHAIN_UNARY(GPU_CHAIN_CASE)
#undef GPU_CHAIN_CASE
#define GPU_CHAIN_CASE(name, Function) \
  case kChain_##name: return Function::template Of<float>(x, y, nullptr);
    GPU_CHAIN_BINARY(GPU_CHAIN_CASE)
#undef GPU_CHAIN_CASE
    default: return 0;
  }
}

GPU_DEVICE void Chain(const ChainArgs& args) {
  float values[kMaxChainInputs + kMaxChainSteps];
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    for (int k = 0; k < args.input_count; ++k) {
      values[k] = args.inputs[k][args.walk.rank == 0 ? i * args.steps_of[k] : Offset(args.walk, args.strides[k], i)];
    }
    float last = 0;
    for (int s = 0; s < args.step_count; ++s) {
      last = Step(args.steps[s], values[args.steps[s].x], values[args.steps[s].y]);
      values[args.input_count + s] = last;
    }
    for (int e = 0; e < args.extra_count; ++e) args.extras[e][i] = values[args.input_count + args.extra_steps[e]];
    args.output[i] = last;
  }
}

GPU_KERNEL(chain_f32, 256, ChainArgs, Chain)

}  // namespace mge::gpu
