// SPDX-License-Identifier: Apache-2.0
// A CUDA device: that of plugins/gpu/runtime, and the state of vendor libraries on it.
#pragma once

#include "cublaslt.h"
#include "plugins/gpu/runtime/device.h"
#ifdef MGE_CUDNN
#include "cudnn_device.h"
#endif

namespace mge::cuda {

class Device : public gpu::Device {
 public:
  using gpu::Device::Device;
  ~Device() {
    cublaslt.Close(*this);
#ifdef MGE_CUDNN
    cudnn.Close(*this);
#endif
  }

  CublasLtHandle cublaslt;
#ifdef MGE_CUDNN
  CudnnDevice cudnn;
#endif
};

}  // namespace mge::cuda
