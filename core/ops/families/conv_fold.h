// SPDX-License-Identifier: Apache-2.0
// Folds a per-channel scale and shift of a convolution's result into its constant weights and bias.
#pragma once

#include "core/ops/families/normalization.h"
#include "core/ops/rewrites/pattern.h"

namespace mge {

// Returns the Conv or ConvTranspose that produces `value`, or null if nothing can be folded into it. Its weights must
// be a float64, float32 or float16 constant, its bias constant or absent, and only `root` may read its result. Sets
// `channels` to the number of output channels.
/*nullable*/ const Node* FoldableConvolution(const Graph& graph, ValueId value, NodeId root, int64_t* channels);

// Replaces `root` by a convolution that computes scale[c] * convolution + shift[c]. Returns false and leaves the graph
// unchanged if a new weight or bias overflows. Fails if `allocator` fails.
absl::StatusOr<bool> FoldIntoConvolution(Graph& graph, NodeId root, const Node& convolution, std::span<const double> scale,
                                         std::span<const double> shift, HostAllocator& allocator);

}  // namespace mge
