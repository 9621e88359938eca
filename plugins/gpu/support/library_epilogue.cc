// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/library_epilogue.h"

#include <algorithm>

#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

template <typename Args>
mge_code Enqueue(const mge_run* run, uint32_t kernel, const Args& args) {
  const Shape3 shape = Spread(args.n);
  Launch launch = {.kernel = kernel, .args = &args, .args_bytes = sizeof(args)};
  std::copy_n(shape.grid, 3, launch.grid);
  std::copy_n(shape.block, 3, launch.block);
  return gpu::Enqueue(run, launch);
}

}  // namespace

bool ActivationEpilogue::Init(mge_dtype type) {
  kernel_ = FindKernel(KernelFor("activate", type));
  return kernel_ != kNoKernel;
}

mge_code ActivationEpilogue::Run(const mge_run* run, const void* x, void* y, int64_t elements,
                                 const Activation& activation) const {
  if (activation.kind == kNoActivation) return MGE_OK;
  ActivateArgs args = {};  // the padding, too: a GPU in software takes each word for an address that looks like one
  args.x = x;
  args.y = y;
  args.n = elements;
  args.activation = activation;
  return Enqueue(run, kernel_, args);
}

bool BiasEpilogue::Init(mge_dtype type) {
  kernel_ = FindKernel(KernelFor("add", type));
  return kernel_ != kNoKernel;
}

mge_code BiasEpilogue::Run(const mge_run* run, void* y, const void* bias, int64_t images, int64_t channels,
                           int64_t pixels) const {
  BinaryArgs args = {};
  args.x = args.z = y;
  args.y = bias;
  args.fault = FaultOf(run);
  args.n = images * channels * pixels;
  args.walk = {3, 0, {images, channels, pixels}};
  args.x_strides[0] = channels * pixels;
  args.x_strides[1] = pixels;
  args.x_strides[2] = args.y_strides[1] = 1;
  return Enqueue(run, kernel_, args);
}

}  // namespace mge::gpu
