// SPDX-License-Identifier: Apache-2.0
// Decision trees in the form that the kernel of TreeEnsemble walks.
//
// Features and splits are unsigned integers, their keys, in the order of the numbers. A node is reached by few instructions:
// both nodes behind a condition lie in one block, and the second one is reached by the carry of the comparison.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "mge/plugin.hpp"
#include "types.h"

namespace mge::cpu {

inline constexpr int64_t kTreeLanes = 8;  // walks side by side; the features of their rows lie side by side, too

template <typename Real>
using TreeWord = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;

// Returns the key of a number. NaN has the highest key of all, and no number has the key 0. Both zeros have one key.
template <typename Real>
MGE_CPU_INLINE TreeWord<Real> TreeKey(Real x) {
  using Word = TreeWord<Real>;
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  const auto bits = std::bit_cast<Word>(x + Real(0));
  const Word key = bits & kSign ? static_cast<Word>(~bits) : static_cast<Word>(bits | kSign);
  return x != x ? static_cast<Word>(~Word{0}) : key;
}
template <typename Real>
inline constexpr TreeWord<Real> kNanKey = static_cast<TreeWord<Real>>(~TreeWord<Real>{0});

// The words of a node, as distances from the place of the node. The words of two nodes alternate in a block of 8 words: the
// places of the first block are 0 and 1, those of the second block 8 and 9.
enum TreeField : uint32_t {
  kTreeSplit = 0,    // key: a walk goes to `next` if the feature is at most this, else to the place behind
  kTreeFeature = 2,  // offset of the feature's lanes in a group of rows, in bytes
  kTreeNext = 4,     // place; that of a leaf is its own
  // A leaf has the bytes of its weight or, if leaves have several weights, its number. Another node has 1 if NaN goes to
  // `next`.
  kTreeValue = 6,
};

// All trees. The nodes of a tree lie level by level, one tree behind the other.
template <typename Real>
struct Forest {
  std::vector<TreeWord<Real>> words;
  std::vector<TreeWord<Real>> roots;  // places
  std::vector<uint32_t> features;     // the columns of the input that the trees compare, ascending
  bool nan = false;                   // NaN goes to `next` at some node
  bool single = false;                // one target, and each leaf has one weight
  std::vector<uint32_t> leaves;       // of several weights: first weight of each leaf, then the number of weights
  std::vector<uint32_t> targets;
  std::vector<Real> weights;
  std::vector<Real> base;  // empty, or one for each target
};

// Creates the trees of a node with constant inputs. Returns null if they are not valid, or too many.
template <typename Real>
std::shared_ptr<const Forest<Real>> MakeForest(const Node& node);

}  // namespace mge::cpu
