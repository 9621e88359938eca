// SPDX-License-Identifier: Apache-2.0
// Folds a scale and a shift for each channel of a convolution's result into its constant weights and bias.
#pragma once

#include "core/ops/normalization.h"
#include "core/ops/rewrites/pattern.h"

namespace mge {

// The Conv or ConvTranspose that yields the value, if its weights and bias are constants of float64, 32 or 16 and
// nothing but `root` reads its result; else nullptr. `channels` gets the number of its output channels.
/*nullable*/ const Node* FoldableConvolution(const Graph& graph, ValueId value, NodeId root, int64_t* channels);

// Puts scale[c] * convolution + shift[c] in root's place. False, and no change, where the new weights overflow.
absl::StatusOr<bool> FoldIntoConvolution(Graph& graph, NodeId root, const Node& convolution,
                                         std::span<const double> scale, std::span<const double> shift,
                                         HostAllocator& allocator);

}  // namespace mge
