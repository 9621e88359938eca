// SPDX-License-Identifier: Apache-2.0
// Decision trees in the form that the kernel of TreeEnsemble walks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::cpu {

constexpr uint32_t kTreeLanes = 8;  // walks side by side; the features of their rows lie side by side, too

// A node. Places and features are offsets in bytes, so that a step needs no multiplication. If the feature is at most `split`
// or, with Forest::strict, below it, a walk goes to `next`, else to the node behind `next`. A leaf leads to itself, so that a
// walk may take more steps than its path has: its feature is an additional one, -infinity, and its split +infinity.
template <typename Real>
struct TreeNode {
  Real split;
  uint32_t feature;  // offset in a group of rows; kNanHolds may be added
  uint32_t next;     // offset in Forest::nodes
  Real value;        // of a leaf: its weight, or the bytes of its number (uint32_t) if leaves have several weights
};
inline constexpr uint32_t kNanHolds = 1;  // NaN goes to `next`

// All trees. The nodes of a tree lie level by level, one tree behind the other.
template <typename Real>
struct Forest {
  std::vector<TreeNode<Real>> nodes;
  std::vector<uint32_t> roots;     // offsets in `nodes`
  std::vector<uint32_t> features;  // the columns of the input that the trees compare, ascending
  bool strict = false;             // the condition is "below", not "at most"
  bool nan = false;                // some node has kNanHolds
  bool single = false;             // one target, and each leaf has one weight, which is in the leaf's node
  std::vector<uint32_t> leaves;    // of several weights: first weight of each leaf, then the number of weights
  std::vector<uint32_t> targets;
  std::vector<Real> weights;
  std::vector<Real> base;  // empty, or one for each target
};

// Creates the trees of a node with constant inputs. Returns null if they are not valid, or need more than 4 GiB.
template <typename Real>
std::shared_ptr<const Forest<Real>> MakeForest(const Node& node);

}  // namespace mge::cpu
