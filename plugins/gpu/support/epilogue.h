// SPDX-License-Identifier: Apache-2.0
// What follows a product or a convolution and is computed with it: the additions of a bias and of a tensor, an
// activation.
#pragma once

#include <string_view>

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/activation.h"

namespace mge::gpu {

// activation(product + bias + residual). Values are ids of the group's graph; -1: none.
struct Epilogue {
  int32_t bias = -1;      // one element per channel
  int32_t residual = -1;  // as large as the output
  Activation activation = {kNoActivation, 0, 0};
  int32_t output = -1;    // of the last node
};

// The dimension that a bias runs along: 1 for a convolution, the last one for a matrix.
enum class ChannelAxis { kSecond, kLast };

// The epilogue of a problem whose first node is the product: every other node must fit. False if one does not.
bool FindEpilogue(const Problem& p, ChannelAxis axis, Epilogue* e);

// Offers, for every node `op`, the groups that its followers make with it.
void OfferEpilogues(const Pattern& pattern, const mge_claim_sink* sink, std::string_view op, ChannelAxis axis);

}  // namespace mge::gpu
