// SPDX-License-Identifier: Apache-2.0
// A CUDA device: that of plugins/gpu/runtime, and the state of vendor libraries on it.
#pragma once

#include "cublaslt.h"
#include "cudnn_device.h"
#include "plugins/gpu/runtime/device.h"

namespace mge::cuda {

class Device : public gpu::Device {
 public:
  using gpu::Device::Device;
  ~Device() {
    cublaslt.Close(*this);
    cudnn.Close(*this);
  }

  CublasLtHandle cublaslt;
  CudnnDevice cudnn;
};

}  // namespace mge::cuda
