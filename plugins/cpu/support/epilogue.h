// SPDX-License-Identifier: Apache-2.0
// What follows a product or a convolution and is computed with it: scale, bias, the addition of a tensor, an activation.
#pragma once

#include <string_view>
#include <vector>

#include "mge/plugin.hpp"
#include "isa.h"
#include "vec/gemm.h"

namespace mge::cpu {

// act(scale * product + bias + add), float32. Values are ids of the group's graph; -1: none.
struct Epilogue {
  int32_t bias = -1;  // one element per channel, or one element
  int32_t add = -1;   // as large as the output
  float scale = 1;
  Activation activation = Activation::kNone;
  float lo = 0, hi = 0;
  int32_t output = -1;  // of the last node
  int32_t linear = -1;  // output of the last node before the activation
};

// Estimate of one thread's time to apply an activation to so many elements, microseconds.
double ActivationUs(Activation activation, double elements, Isa isa);

// The dimension that a bias runs along: 1 for a convolution, the last one for a matrix.
enum class ChannelAxis { kSecond, kLast };

// The epilogue of a product or convolution alone; an input 2 of its own fills the place of the bias, and that of the
// addend if it is as large as the output, with kOwnOperand.
inline constexpr int32_t kOwnOperand = INT32_MAX;
Epilogue StartOf(const Node& product);

// Makes `next`, which reads e.output, part of the epilogue; false, and e is unchanged, if it does not fit.
bool Absorb(const Graph& graph, const Node& next, ChannelAxis axis, Epilogue& e);

// The epilogue of a problem whose first node is the product: every other node must fit. False if one does not.
// Places filled by kOwnOperand are -1 then.
bool FindEpilogue(const Problem& p, ChannelAxis axis, Epilogue& e);

// Offers, for every node of an operator in `ops` that starts a group, all groups that its followers make with it.
void OfferEpilogues(const Pattern& pattern, const mge_claim_sink* sink, std::string_view name,
                    std::span<const std::string_view> ops, ChannelAxis axis);

}  // namespace mge::cpu
