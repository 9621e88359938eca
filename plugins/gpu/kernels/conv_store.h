// SPDX-License-Identifier: Apache-2.0
// The epilogue of convolutions. Included by kernels only.
#pragma once

#include "plugins/gpu/kernels/activate.h"
#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Stores an element of the result: the sum after bias, residual and activation.
template <typename T, typename C>
GPU_DEVICE void Store(const ConvArgs& args, C sum, int64_t output, int64_t place) {
  if (args.bias) sum += Widen(static_cast<const T*>(args.bias)[output]);
  if (args.residual) sum += Widen(static_cast<const T*>(args.residual)[place]);
  static_cast<T*>(args.y)[place] = Narrow<T>::Of(Activate(args.activation, sum));
}

}  // namespace mge::gpu
