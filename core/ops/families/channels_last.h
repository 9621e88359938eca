// SPDX-License-Identifier: Apache-2.0
// The order of dimensions of operators that have the channels last.
#pragma once

#include "core/ops/function_body.h"

namespace mge {

// Moves the channels of a value of this rank from the last dimension to dimension 1. The rank must not be below 2.
inline ValueId ChannelsSecond(FunctionBody& f, ValueId x, int64_t rank) {
  Ints perm = {0, rank - 1};
  for (int64_t d = 1; d < rank - 1; ++d) perm.push_back(d);
  return f.Transpose(x, std::move(perm));
}

// Returns the permutation that moves the channels back.
inline Ints ChannelsLast(int64_t rank) {
  Ints perm = {0};
  for (int64_t d = 2; d < rank; ++d) perm.push_back(d);
  perm.push_back(1);
  return perm;
}

}  // namespace mge
