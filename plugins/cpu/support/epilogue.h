// SPDX-License-Identifier: Apache-2.0
// Epilogues: scale, bias, addition of a tensor and activation after a product or a convolution, computed together with it.
#pragma once

#include <string_view>
#include <vector>

#include "isa.h"
#include "mge/plugin.hpp"
#include "vec/gemm.h"

namespace mge::cpu {

// act(scale * product + bias + add), float32. Values are ids in the group's graph; -1: absent.
struct Epilogue {
  int32_t bias = -1;  // one element per channel, or one element
  int32_t add = -1;   // same shape as the output
  float scale = 1;
  Activation activation = Activation::kNone;
  float lo = 0, hi = 0;
  int32_t output = -1;  // output of the last node
  int32_t linear = -1;  // output of the last node before the activation
};

// Estimate of one thread's time to apply an activation to so many elements, microseconds.
double ActivationUs(Activation activation, double elements, Isa isa);

// The dimension of a bias: 1 for a convolution, the last one for a matrix.
enum class ChannelAxis { kSecond, kLast };

// Marks a bias or addend that is the product's own input 2.
inline constexpr int32_t kOwnOperand = INT32_MAX;
// Returns the epilogue of a product or convolution alone. If the node has an input 2, the bias is set to kOwnOperand, and
// also the addend if the input is as large as the output.
Epilogue StartOf(const Node& product);

// Adds `next`, which reads e.output, to the epilogue of values of that type. Returns false and leaves e unchanged if it does
// not fit.
bool Absorb(const Graph& graph, const Node& next, ChannelAxis axis, mge_dtype type, Epilogue& e);

// Reads the epilogue of a problem in float32 whose first node is the product. Returns false if a node does not fit. Members that were
// kOwnOperand become -1.
bool FindEpilogue(const Problem& p, ChannelAxis axis, Epilogue& e);

// Offers, for every node in `ops` that starts a group, all groups with the nodes that follow it. `widened`: also groups of a
// 16-bit type, which only widened kernels compute (widened_kernels.h).
void OfferEpilogues(const Pattern& pattern, ClaimList& claims, std::string_view name, std::span<const std::string_view> ops,
                    ChannelAxis axis, bool widened = false);

}  // namespace mge::cpu
