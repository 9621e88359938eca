// SPDX-License-Identifier: Apache-2.0
// Decision trees in the form that the kernel of TreeEnsemble walks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::cpu {

// A node. A leaf leads to itself, so that a walk may take more steps than its path has. A row goes to next[1] if its feature
// is at most `split`, or below it (Forest::strict).
template <typename Real>
struct TreeNode {
  Real split;        // of a leaf: its weight, or the bytes of its number if leaves have several weights
  uint32_t feature;  // the highest bit: NaN goes to next[1]
  uint32_t next[2];
};
inline constexpr uint32_t kNanHolds = uint32_t{1} << 31;

// All trees. The nodes of a tree lie level by level, one tree behind the other.
template <typename Real>
struct Forest {
  std::vector<TreeNode<Real>> nodes;
  std::vector<uint32_t> roots;
  bool strict = false;           // the condition is "below", not "at most"
  bool nan = false;              // some node has kNanHolds
  bool single = false;           // one target, and each leaf has one weight, which is in the leaf's node
  std::vector<uint32_t> leaves;  // of several weights: first weight of each leaf, then the number of weights
  std::vector<uint32_t> targets;
  std::vector<Real> weights;
  std::vector<Real> base;  // empty, or one for each target
};

// Creates the trees of a node with constant inputs. Returns null if they are not valid, or need more than 2^31 nodes.
template <typename Real>
std::shared_ptr<const Forest<Real>> MakeForest(const Node& node);

}  // namespace mge::cpu
