// SPDX-License-Identifier: Apache-2.0
// Plans of cuDNN for pools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cudnn_plans.h"

namespace mge::cuda {

// A pool in the terms of the library, with one to three axes. Missing leading axes have size 1. Windows have no dilation.
struct PoolShape {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnResampleMode_t mode = CUDNN_RESAMPLE_MAXPOOL;
  int64_t images = 0, channels = 0;
  gpu::WindowAxis axis[3] = {};

  // Returns everything that plans depend on, apart from the library and the device.
  std::string Text() const;
};
// The numbers by which a plan knows its tensors.
enum PoolTensor : int64_t { kPoolX = 1, kPoolY };

// Does what FindPlans of cudnn_plans.h does, for a pool.
Result FindPlans(const Cudnn& library, const Descriptor& properties, const PoolShape& shape,
                 std::vector<ExecutionPlan>* out);

}  // namespace mge::cuda
