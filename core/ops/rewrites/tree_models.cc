// SPDX-License-Identifier: Apache-2.0
// Replaces the older tree operators by a TreeEnsemble, for which backends have kernels. A classifier becomes a TreeEnsemble
// that computes the scores and a TreeLabels that chooses the labels, which may be strings.
#include <algorithm>
#include <optional>
#include <vector>

#include "core/ops/families/trees.h"
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_tree_models {
namespace {

// Returns the classes for which all rows get a score. Returns nullopt if that depends on the row, or if the trees are not
// valid. A class always has a score if all leaves of one tree have a weight for it.
std::optional<Ints> ScoredClasses(const Graph& graph, const Node& node, int64_t classes) {
  auto list = [&](int input) { return graph.value(node.inputs[input]).constant.Data<int32_t>(); };
  const auto nodes = list(kTreeNodes), roots = list(kTreeRoots), leaves = list(kTreeLeaves), targets = list(kTreeTargets);
  const auto node_count = static_cast<int64_t>(nodes.size() / 4), leaf_count = static_cast<int64_t>(leaves.size()) - 1;
  std::vector<char> ever(static_cast<size_t>(classes), 0), always(ever);
  std::vector<int64_t> in_tree(static_cast<size_t>(classes)), last_leaf(static_cast<size_t>(classes), -1);
  std::vector<int32_t> open;
  int64_t visits = 0;
  for (int32_t root : roots) {
    int64_t leaves_of_tree = 0;
    std::fill(in_tree.begin(), in_tree.end(), 0);
    open = {root};
    while (!open.empty()) {
      const int32_t place = open.back();
      open.pop_back();
      if (++visits > 2 * (node_count + leaf_count)) return std::nullopt;  // paths join: this is no tree
      if (place >= 0) {
        if (place >= node_count) return std::nullopt;
        open.push_back(nodes[4 * static_cast<size_t>(place) + 2]);
        open.push_back(nodes[4 * static_cast<size_t>(place) + 3]);
        continue;
      }
      const int64_t leaf = -1 - static_cast<int64_t>(place);
      if (leaf >= leaf_count || leaves[leaf] < 0 || leaves[leaf + 1] > static_cast<int64_t>(targets.size()))
        return std::nullopt;
      ++leaves_of_tree;
      for (int32_t i = leaves[leaf]; i < leaves[leaf + 1]; ++i) {
        const int32_t target = targets[i];
        if (target < 0 || target >= classes) return std::nullopt;
        ever[target] = 1;
        in_tree[target] += last_leaf[target] != visits;  // once per leaf
        last_leaf[target] = visits;
      }
    }
    for (int64_t c = 0; c < classes; ++c) always[c] |= in_tree[c] == leaves_of_tree;
  }
  Ints out;
  for (int64_t c = 0; c < classes; ++c) {
    if (ever[c] != always[c]) return std::nullopt;
    if (always[c]) out.push_back(c);
  }
  return out;
}

// Adds the node that computes the scores as float32, into `out` if that is a value. Returns the scores.
ValueId AddScores(Graph& graph, const Node& old, int64_t targets, int64_t aggregate, ValueId out = kNone) {
  NodeAdder nodes(graph, old);
  std::vector<ValueId> inputs = old.inputs;
  bool wide = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    wide = wide || (inputs[i] != kNone && graph.value(inputs[i]).type.dtype == DType::kF64);
  const DType type = wide ? DType::kF64 : DType::kF32;
  if (graph.value(inputs[kTreeX]).type.dtype != type) inputs[kTreeX] = nodes.Add("Cast", {inputs[kTreeX]}, CastTo(type));
  Attributes attrs = IntAttribute("n_targets", targets);
  attrs.Set("aggregate_function", aggregate);
  if (out == kNone) out = graph.AddTemporary(old.name);
  const ValueId scores = wide ? graph.AddTemporary(old.name) : out;
  nodes.AddTo({scores}, "TreeEnsemble", std::move(inputs), std::move(attrs), kMlDomain);
  if (wide) nodes.AddTo({out}, "Cast", {scores}, CastTo(DType::kF32));
  return out;
}

bool ReplaceRegressor(Graph& graph, NodeId id) {
  const Attributes& attrs = graph.node(id).attrs;
  if (attrs.Text("post_transform") != "NONE") return false;
  absl::StatusOr<int> aggregate = ReadChoice(attrs, "aggregate_function", {"AVERAGE", "SUM", "MIN", "MAX"});
  if (!aggregate.ok()) return false;
  const Node old = graph.node(id);  // a copy: adding nodes moves it
  AddScores(graph, old, old.attrs.Int("n_targets"), *aggregate, old.outputs[0]);
  graph.RemoveNode(id);
  return true;
}

bool ReplaceClassifier(Graph& graph, NodeId id) {
  absl::StatusOr<ClassLabels> labels = ReadLabels(graph.node(id).attrs, "classlabels_int64s");
  if (!labels.ok()) return false;
  const Node old = graph.node(id);  // a copy: adding nodes moves it
  const int64_t count = labels->count();
  std::optional<Ints> scored = ScoredClasses(graph, old, count);
  if (!scored) return false;
  TreeClasses classes;
  classes.labels = *std::move(labels);
  auto constant = [&](int input) { return graph.value(old.inputs[input]).constant; };
  ReadWeightSigns(constant(kTreeTargets).Data<int32_t>(), constant(kTreeWeights), classes);
  if (old.inputs.size() > kTreeBase && old.inputs[kTreeBase] != kNone) {
    const int64_t base = constant(kTreeBase).elements();
    // A single base value is of the first class, but TreeEnsemble adds it to all: their scores must not be used.
    if (base != count && (count != 2 || *scored != Ints{0})) return false;
    if (base == count) {
      for (int64_t c = 0; c < count; ++c) {
        if (std::find(scored->begin(), scored->end(), c) == scored->end()) scored->push_back(c);
      }
    }
  }
  const ValueId scores = AddScores(graph, old, count, static_cast<int64_t>(TreeAggregate::kSum));
  Attributes attrs = old.attrs;
  attrs.Set("binary", int64_t{classes.binary});
  attrs.Set("positive", int64_t{classes.positive});
  attrs.Set("scored", *std::move(scored));
  NodeAdder(graph, old).AddTo(old.outputs, "TreeLabels", {scores}, std::move(attrs), "mge");
  graph.RemoveNode(id);
  return true;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& node = graph.node(id);
  const bool regressor = node.op == "TreeEnsembleRegressor", classifier = node.op == "TreeEnsembleClassifier";
  if (node.domain != kMlDomain || (!regressor && !classifier)) return false;
  if (graph.value(node.inputs[kTreeX]).type.dtype == DType::kUndefined) return false;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone && !IsConstant(graph, node.inputs[i])) return false;
  }
  return regressor ? ReplaceRegressor(graph, id) : ReplaceClassifier(graph, id);
}

}  // namespace

MGE_REWRITE(tree_models) = {.name = "tree_models",
                            .doc = "Replaces TreeEnsembleRegressor and TreeEnsembleClassifier by a TreeEnsemble.",
                            .apply = Apply};

}  // namespace mge::rewrite_tree_models
