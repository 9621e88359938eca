// SPDX-License-Identifier: Apache-2.0
#include "activation.h"

#include <algorithm>

#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/support/recipe.h"

namespace mge::cuda {

bool ActivationBehind::Init() {
  kernel_ = gpu::FindKernel("activate_f32");
  return kernel_ != gpu::kNoKernel;
}

mge_code ActivationBehind::Run(const mge_run* run, void* y, int64_t elements, const gpu::Activation& activation) const {
  if (activation.kind == gpu::kNoActivation) return MGE_OK;
  const gpu::ActivateArgs args = {y, y, elements, activation};
  const gpu::Shape3 shape = gpu::Spread(elements);
  gpu::Launch launch = {.kernel = kernel_, .args = &args, .args_bytes = sizeof(args)};
  std::copy_n(shape.grid, 3, launch.grid);
  std::copy_n(shape.block, 3, launch.block);
  return gpu::Enqueue(run, launch);
}

}  // namespace mge::cuda
