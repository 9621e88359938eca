// SPDX-License-Identifier: Apache-2.0
// The activation behind a call of a vendor's library that has none of this kind.
#pragma once

#include <cstdint>

#include "plugins/gpu/kernels/activation.h"
#include "plugins/gpu/launch.h"

namespace mge::cuda {

// An activation in place, by a kernel of plugins/gpu.
class ActivationBehind {
 public:
  // Finds the kernel. Returns false if the backend's image lacks it.
  bool Init();
  // Enqueues the activation of float32 elements at y. Does nothing if it is kNoActivation.
  mge_code Run(const mge_run* run, void* y, int64_t elements, const gpu::Activation& activation) const;

 private:
  uint32_t kernel_ = gpu::kNoKernel;
};

}  // namespace mge::cuda
