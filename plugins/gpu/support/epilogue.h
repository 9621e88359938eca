// SPDX-License-Identifier: Apache-2.0
// Epilogues: the additions of a bias and of a tensor and the activation after a product or a convolution, computed together
// with it. All values are float32, float16 or bfloat16; the kernels compute in float and round the result only.
#pragma once

#include <string_view>

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/activation.h"

namespace mge::gpu {

// activation(product + bias + residual). Values are ids in the group's graph; -1: absent.
struct Epilogue {
  int32_t bias = -1;      // one element per channel
  int32_t residual = -1;  // same shape as the output
  Activation activation = {kNoActivation, 0, 0};
  int32_t output = -1;  // output of the last node
  int32_t before = -1;  // argument of the activation, if it is an output of the group, too
};

// The dimension of a bias: 1 for a convolution, the last one for a matrix.
enum class ChannelAxis { kSecond, kLast };

// Returns whether the value broadcasts along all dimensions of y except the channels, of which it has one element each.
bool IsPerChannel(const Value& v, const Value& y, ChannelAxis axis);

// Reads the epilogue of a problem whose first node is the product. Returns false if a node does not fit, or if a convolution
// has a second output.
bool FindEpilogue(const Problem& p, ChannelAxis axis, Epilogue* e);

// Offers, for every node `op`, the groups with the nodes that follow it. A product may also write the argument of a Gelu, which
// its gradient reads. Other activations with such an argument are cheaper as chains with their other readers, or have none.
void OfferEpilogues(const Pattern& pattern, ClaimList& claims, std::string_view op, ChannelAxis axis);

}  // namespace mge::gpu
