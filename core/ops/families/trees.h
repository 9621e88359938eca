// SPDX-License-Identifier: Apache-2.0
// Ensembles of decision trees. The attributes of the three tree operators are lists with an element for each node of each
// tree. When a node is bound, they are checked once and packed into constants, which become inputs of the node. Graphs share
// constants, so that copies of a graph stay cheap, and backends read them.
#pragma once

#include <span>
#include <vector>

#include "core/ops/families/ml.h"

namespace mge {

// The inputs after packing. "Place" is an index of a node if it is 0 or more, else -1 - index of a leaf.
enum TreeInput {
  kTreeX,
  kTreeNodes,    // int32[nodes, 4]: feature, flags (kTreeCompare...), place if the condition holds, place if it does not
  kTreeSplits,   // float32 or float64 [nodes]: the right side of the condition
  kTreeRoots,    // int32[trees]: places
  kTreeLeaves,   // int32[leaves + 1]: the first weight of each leaf, then the number of weights
  kTreeTargets,  // int32[weights]
  kTreeWeights,  // float32 or float64 [weights]: added to the score of the target
  kTreeBase,     // type of the weights [1] or [targets]: added to the scores; optional
};

// The flags of a node: how it compares a feature with its split, and whether its condition holds for NaN.
inline constexpr int32_t kTreeCompareMask = 7;
enum TreeCompare : int32_t { kTreeLessEqual, kTreeLess, kTreeGreaterEqual, kTreeGreater, kTreeEqual, kTreeNotEqual };
inline constexpr int32_t kTreeMissingHolds = 8;

inline constexpr int64_t kMaxTreeTargets = int64_t{1} << 24;  // a row of scores must fit into memory

enum class TreeAggregate { kAverage, kSum, kMin, kMax };  // the numbers of the attribute aggregate_function

constexpr InputList TreeInputs(TypeSet x) {
  constexpr TypeSet kReal = {DType::kF32, DType::kF64}, kInt = {DType::kI32};
  return {{"X", x},         {"nodes", kInt},   {"splits", kReal},  {"roots", kInt},
          {"leaves", kInt}, {"targets", kInt}, {"weights", kReal}, {"base_values", kReal, Arity::kOptional}};
}

// Trees while they are packed.
struct TreeLists {
  std::vector<int32_t> nodes, roots, leaves = {0}, targets;
  std::vector<double> splits, weights, base;
  bool wide_splits = false, wide_weights = false;  // stored as float64
};

// Packs the attributes of TreeEnsembleClassifier (`stem` "class") or TreeEnsembleRegressor ("target") into inputs. Scores
// have numbers below `targets`. Nodes that already have the inputs are left unchanged.
absl::Status PackTreeAttributes(Graph& graph, Node& node, std::string_view stem, int64_t targets);
// Adds the lists as constant inputs.
absl::Status AddTreeInputs(Graph& graph, Node& node, const TreeLists& lists);

// Removes an attribute from the node and returns it. Returns null if it is absent. Fails if it has another type.
template <typename T>
absl::StatusOr<std::shared_ptr<T>> TakeAttribute(Node& node, std::string_view name) {
  const AttributeValue* value = node.attrs.Find(name);
  if (!value) return std::shared_ptr<T>();
  const T* typed = std::get_if<T>(value);
  if (!typed) return Fail(errors::kInvalidNode, fmt::format("{}: attribute '{}' has a wrong type", node.op, name));
  auto out = std::make_shared<T>(*typed);
  node.attrs.Remove(name);
  return out;
}

// The inputs of a tree operator, checked: all places and targets exist, and no path has a cycle.
struct Trees {
  std::span<const int32_t> nodes, roots, leaves, targets;
  Tensor splits, weights, base;  // of one floating type, the one in which scores are computed
  bool wide = false;             // that type is float64
};
absl::StatusOr<Trees> ReadTrees(EvalContext& ctx, int64_t columns, int64_t targets);

// The scores of one row before the base values are added. `scored` is 0 for targets that no reached leaf has.
template <typename Real>
struct TreeScores {
  std::vector<Real> scores;
  std::vector<uint8_t> scored;
};
// Computes the scores of all rows of input 0 and calls finish(row, scores).
template <typename Real, typename F>
absl::Status ForEachTreeRow(EvalContext& ctx, const Trees& trees, const RowShape& shape, int64_t targets,
                            TreeAggregate aggregate, F finish);
// Returns the base value of a target.
template <typename Real>
Real TreeBase(const Trees& trees, int64_t target) {
  const int64_t count = trees.base.defined() ? trees.base.elements() : 0;
  return count == 0 ? Real(0) : trees.base.Data<Real>()[count == 1 ? 0 : target];
}

// Returns the leaf of one tree that a row reaches.
template <typename Real>
int32_t ReachedLeaf(const Trees& trees, int32_t place, const Real* row) {
  while (place >= 0) {
    const int32_t* node = trees.nodes.data() + 4 * static_cast<int64_t>(place);
    const Real x = row[node[0]], split = trees.splits.Data<Real>()[place];
    bool holds = false;
    switch (node[1] & kTreeCompareMask) {
      case kTreeLessEqual: holds = x <= split; break;
      case kTreeLess: holds = x < split; break;
      case kTreeGreaterEqual: holds = x >= split; break;
      case kTreeGreater: holds = x > split; break;
      case kTreeEqual: holds = x == split; break;
      default: holds = x != split;
    }
    holds = holds || (x != x && (node[1] & kTreeMissingHolds) != 0);
    place = node[holds ? 2 : 3];
  }
  return -1 - place;
}

template <typename Real>
void AddLeaf(const Trees& trees, int32_t leaf, TreeAggregate aggregate, TreeScores<Real>& out) {
  for (int32_t i = trees.leaves[leaf]; i < trees.leaves[leaf + 1]; ++i) {
    const Real weight = trees.weights.Data<Real>()[i];
    Real& score = out.scores[trees.targets[i]];
    uint8_t& scored = out.scored[trees.targets[i]];
    switch (aggregate) {
      case TreeAggregate::kMin: score = scored ? std::min(score, weight) : weight; break;
      case TreeAggregate::kMax: score = scored ? std::max(score, weight) : weight; break;
      default: score += weight;
    }
    scored = 1;
  }
}

template <typename Real, typename F>
absl::Status ForEachTreeRow(EvalContext& ctx, const Trees& trees, const RowShape& shape, int64_t targets,
                            TreeAggregate aggregate, F finish) {
  const Tensor& x = ctx.input(kTreeX);
  std::vector<Real> row(static_cast<size_t>(shape.columns));
  TreeScores<Real> out;
  for (int64_t r = 0; r < shape.rows; ++r) {
    if (r % 64 == 0) MGE_RETURN_IF_ERROR(ctx.CheckStop());
    DispatchNumeric(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = x.Data<T>().data() + r * shape.columns;
      for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<Real>(from[i]);
    });
    out.scores.assign(static_cast<size_t>(targets), Real(0));
    out.scored.assign(static_cast<size_t>(targets), 0);
    for (int32_t root : trees.roots) AddLeaf(trees, ReachedLeaf(trees, root, row.data()), aggregate, out);
    if (aggregate == TreeAggregate::kAverage) {
      for (Real& s : out.scores) s /= static_cast<Real>(trees.roots.size());
    }
    finish(r, out);
  }
  return absl::OkStatus();
}

// The last step of a tree classifier: chooses the label and transforms the scores of a row.
struct TreeClasses {
  ClassLabels labels;
  PostTransform transform = PostTransform::kNone;
  bool binary = false;    // two labels, and all weights are of one class: the scores are of the second label
  bool positive = false;  // no weight is negative: the scores of `binary` are probabilities
};
// Sets `binary` and `positive` from the targets and weights of all leaves.
void ReadWeightSigns(std::span<const int32_t> targets, const Tensor& weights, TreeClasses& classes);
// `scores` and `scored` have one element for each label; base values are added. Sets out[labels] and element `row` of `y`.
void FinishTreeRow(const TreeClasses& classes, std::span<const float> scores, std::span<const uint8_t> scored, int64_t row,
                   Tensor& y, std::span<float> out);

}  // namespace mge
