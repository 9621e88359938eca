// SPDX-License-Identifier: Apache-2.0
// Kernels of plugins/gpu behind a call of a vendor's library, for what that call leaves out.
#pragma once

#include <cstdint>

#include "plugins/gpu/kernels/activation.h"
#include "plugins/gpu/launch.h"

namespace mge::gpu {

// An activation of the elements of a tensor.
class ActivationEpilogue {
 public:
  // Finds the kernel for an element type. Returns false if the backend's image lacks it.
  bool Init(mge_dtype type);
  // Enqueues the activation of the elements at x, which may be y. Does nothing if it is kNoActivation.
  mge_code Run(const mge_run* run, const void* x, void* y, int64_t elements, const Activation& activation) const;

 private:
  uint32_t kernel_ = kNoKernel;
};

// The addition of a bias per channel to a tensor (images, channels, pixels), in place.
class BiasEpilogue {
 public:
  bool Init(mge_dtype type);
  mge_code Run(const mge_run* run, void* y, const void* bias, int64_t images, int64_t channels, int64_t pixels) const;

 private:
  uint32_t kernel_ = kNoKernel;
};

}  // namespace mge::gpu
