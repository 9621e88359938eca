// SPDX-License-Identifier: Apache-2.0
// A ROCm device: that of plugins/gpu/runtime, and the state of vendor libraries on it.
#pragma once

#include "miopen.h"
#include "rocblas.h"

namespace mge::rocm {

class Device : public gpu::Device {
 public:
  using gpu::Device::Device;
  ~Device() {
    rocblas.Close(*this);
    miopen.Close(*this);
  }

  RocblasHandle rocblas;
  MiopenDevice miopen;
};

}  // namespace mge::rocm
