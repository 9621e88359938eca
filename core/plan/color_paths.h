// SPDX-License-Identifier: Apache-2.0
// Colours the nodes of a graph by their longest paths, as NNVM does for parallel lanes (MXNET_EXEC_NUM_TEMP).
//
// Nodes of one path depend on each other, so they cannot run at the same time and lose nothing in one lane. Algorithm: for
// each colour but the last, finds the path with the greatest sum of importance, gives the colour to its nodes, and sets
// their importance to 0. Stops early if no importance is left. The other nodes get the last colour.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mge {

// Returns the colour of each node, from 0 to `colors` - 1. `inputs[n]` are the nodes on which node n depends. They have
// smaller numbers than n. `importance` is 0 for a node that needs no lane. `colors` must be at least 1.
std::vector<int32_t> ColorPaths(std::span<const std::vector<int32_t>> inputs, std::vector<int64_t> importance,
                                int32_t colors);

}  // namespace mge
