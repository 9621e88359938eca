// SPDX-License-Identifier: Apache-2.0
// Plans of cuDNN, and the graphs of convolutions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cudnn_descriptor.h"
#include "plugins/gpu/kernels/conv.h"

namespace mge::cuda {

// A convolution in the terms of the library: y = relu(x * w + residual + bias), with each of the last three optional. The
// engines that need no compilation compute it in this order only. Or, if transposed, y = the convolution's gradient by its
// input, alone: x and y change places. Or w = the convolution's gradient by its filter, alone. With the channels last, w is
// (outputs, window, channels / groups), or, if transposed, (channels, window, outputs / groups).
struct ConvolutionShape {
  enum Kind : uint8_t { kForward, kTransposed, kFilterGradient };
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int64_t images = 0, channels = 0, outputs = 0, groups = 1;
  gpu::WindowAxis axis[3] = {};
  bool bias = false, residual = false, relu = false, channels_last = false;
  Kind kind = kForward;
  bool transposed() const { return kind == kTransposed; }

  // Returns everything that plans depend on, apart from the library and the device.
  std::string Text() const;
};
// The numbers by which a plan knows its tensors.
enum ConvolutionTensor : int64_t { kX = 1, kW, kResidual, kBias, kY };

// An execution plan in the library's text form.
struct ExecutionPlan {
  uint64_t attributes = 0;  // MGE_KERNEL_ bits of the engine
  uint64_t workspace = 0;   // bytes
  std::string json;
};

// Return plans for the device with these properties, the best one first: of a convolution, and of any graph of operations on
// tensors of `type`. Engines that compile code when they are planned are left out. Fail if the library has no other one.
Result FindPlans(const Cudnn& library, const Descriptor& properties, const ConvolutionShape& shape,
                 std::vector<ExecutionPlan>* out);
Result FindPlansOf(const Cudnn& library, const Descriptor& properties, const Descriptor& graph, cudnnDataType_t type,
                   std::vector<ExecutionPlan>* out);

// Convert plans from and to bytes. ReadPlans returns false if the bytes are not those of WritePlans.
std::string WritePlans(const std::vector<ExecutionPlan>& plans);
bool ReadPlans(std::string_view bytes, std::vector<ExecutionPlan>* plans);

}  // namespace mge::cuda
