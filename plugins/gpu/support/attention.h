// SPDX-License-Identifier: Apache-2.0
// Finds attention in a graph: a product of queries and keys, a scale, a mask, a softmax, and a product with values, with the
// transposes around them, and the Split of one tensor into queries, keys and values.
#pragma once

#include <cstdint>
#include <vector>

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/attention.h"

namespace mge::gpu {

// softmax(scale * q k^T + mask) v. Values are ids in the graph. q, k, v and the output have one type: float32, float16 or
// bfloat16. Between the products, 16-bit types may be cast to float32 and back.
struct Attention {
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  int32_t q = -1, k = -1, v = -1;
  int64_t q_start = 0, k_start = 0, v_start = 0;  // elements in front of the operand in its value
  int32_t mask = -1;                              // -1: none but that of args.causal
  int32_t output = -1;                            // output 0 of the last node
  std::vector<int32_t> nodes;                     // ascending
  AttentionArgs args = {};                        // without pointers
};

// Finds the attention around node `softmax`. A value between its nodes has no other reader. Returns false if there is none
// that the kernel computes.
bool FindAttention(const Graph& graph, int softmax, Attention* found);

// Offers every attention of the graph.
void OfferAttention(const Pattern& pattern, ClaimList& claims);

}  // namespace mge::gpu
