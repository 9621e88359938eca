// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/trees.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>

namespace mge {
namespace {

constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"};
constexpr size_t kMaxElements = std::numeric_limits<int32_t>::max() / 4;  // of a list; indices are int32

absl::Status BadTree(const Node& node, std::string what) {
  return Fail(errors::kInvalidNode, fmt::format("{}: {}", node.op, what));
}

// A list of reals that a model gives as floats or, since operator set 3, as a tensor NAME_as_tensor.
struct Reals {
  std::vector<double> values;
  bool wide = false;
};
absl::StatusOr<Reals> TakeReals(Node& node, const std::string& name) {
  Reals out;
  MGE_ASSIGN_OR_RETURN(auto floats, TakeAttribute<Floats>(node, name));
  MGE_ASSIGN_OR_RETURN(auto tensor, TakeAttribute<Tensor>(node, name + "_as_tensor"));
  if (floats && !floats->empty()) {
    out.values.assign(floats->begin(), floats->end());
  } else if (tensor) {
    out.wide = tensor->dtype() == DType::kF64;
    const bool known = DispatchFloating(tensor->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (T v : tensor->Data<T>()) out.values.push_back(static_cast<double>(static_cast<Compute<T>>(v)));
    });
    if (!known) return BadTree(node, fmt::format("attribute '{}_as_tensor' is {}", name, DTypeName(tensor->dtype())));
  }
  return out;
}

absl::StatusOr<Ints> TakeInts(Node& node, const std::string& name) {
  MGE_ASSIGN_OR_RETURN(auto list, TakeAttribute<Ints>(node, name));
  return list ? std::move(*list) : Ints();
}

// Finds nodes by the numbers of their tree and node.
class NodeIndex {
 public:
  absl::Status Build(const Node& node, const Ints& trees, const Ints& ids) {
    // Most models list the nodes of a tree together, in the order of their numbers 0, 1, ...: they need no table.
    bool numbered = true;
    for (size_t i = 0; i < trees.size() && numbered; ++i) {
      const bool starts = i == 0 || trees[i] != trees[i - 1];
      if (starts) numbered = blocks_.emplace(trees[i], Block{static_cast<int32_t>(i), 0}).second;
      Block& block = blocks_.at(trees[i]);
      numbered = numbered && ids[i] == block.count++;
    }
    if (numbered) return absl::OkStatus();
    blocks_.clear();
    nodes_.reserve(trees.size());
    for (size_t i = 0; i < trees.size(); ++i) {
      if (nodes_.emplace(Key{trees[i], ids[i]}, static_cast<int32_t>(i)).second) continue;
      return BadTree(node, fmt::format("node {} of tree {} is given twice", ids[i], trees[i]));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<int32_t> Find(const Node& node, int64_t tree, int64_t id) const {
    if (auto block = blocks_.find(tree); block != blocks_.end()) {
      if (id >= 0 && id < block->second.count) return block->second.first + static_cast<int32_t>(id);
    } else if (auto at = nodes_.find(Key{tree, id}); at != nodes_.end()) {
      return at->second;
    }
    return BadTree(node, fmt::format("tree {} has no node {}", tree, id));
  }

 private:
  struct Block {
    int32_t first, count;
  };
  struct Key {
    int64_t tree, id;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return static_cast<size_t>((static_cast<uint64_t>(k.tree) << 32 ^ static_cast<uint64_t>(k.id)) * 0x9e3779b97f4a7c15u);
    }
  };
  std::unordered_map<int64_t, Block> blocks_;
  std::unordered_map<Key, int32_t, Hash> nodes_;
};

// The weights of all leaves, as the model lists them.
struct LeafWeights {
  Ints trees, ids, targets;
  Reals weights;
};

// Adds the weights of each leaf, in the order of the leaves. `leaf_of` is the leaf of each node, or -1.
absl::Status AddWeights(const Node& node, const NodeIndex& index, const LeafWeights& w, std::span<const int32_t> leaf_of,
                        int64_t leaves, int64_t targets, TreeLists& lists) {
  std::vector<int32_t> leaf(w.targets.size());
  std::vector<int32_t> first(static_cast<size_t>(leaves) + 1, 0);
  for (size_t i = 0; i < leaf.size(); ++i) {
    MGE_ASSIGN_OR_RETURN(const int32_t at, index.Find(node, w.trees[i], w.ids[i]));
    leaf[i] = leaf_of[at];  // the weight of an inner node is ignored
    if (leaf[i] >= 0) ++first[leaf[i] + 1];
    if (w.targets[i] >= 0 && w.targets[i] < targets) continue;
    return BadTree(node, fmt::format("a leaf has the target {}; there are {}", w.targets[i], targets));
  }
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  lists.leaves = first;
  lists.targets.resize(static_cast<size_t>(first.back()));
  lists.weights.resize(lists.targets.size());
  for (size_t i = 0; i < leaf.size(); ++i) {
    if (leaf[i] < 0) continue;
    const int32_t at = first[leaf[i]]++;
    lists.targets[at] = static_cast<int32_t>(w.targets[i]);
    lists.weights[at] = w.weights.values[i];
  }
  return absl::OkStatus();
}

// Returns whether a path from a node leads back to it. Removes nodes without predecessors until none is left.
bool HasCycle(std::span<const int32_t> nodes) {
  const size_t count = nodes.size() / 4;
  std::vector<int32_t> predecessors(count, 0), free;
  auto each = [&](size_t n, auto visit) {
    for (size_t side : {2, 3}) {
      if (nodes[4 * n + side] >= 0) visit(nodes[4 * n + side]);
    }
  };
  for (size_t n = 0; n < count; ++n) each(n, [&](int32_t to) { ++predecessors[to]; });
  for (size_t n = 0; n < count; ++n) {
    if (predecessors[n] == 0) free.push_back(static_cast<int32_t>(n));
  }
  size_t removed = 0;
  for (; !free.empty(); ++removed) {
    const auto n = static_cast<size_t>(free.back());
    free.pop_back();
    each(n, [&](int32_t to) {
      if (--predecessors[to] == 0) free.push_back(to);
    });
  }
  return removed < count;
}

// Returns the reason why the lists are not trees, or "".
std::string Problem(const Trees& t, int64_t columns, int64_t targets) {
  const auto nodes = static_cast<int64_t>(t.nodes.size() / 4), leaves = static_cast<int64_t>(t.leaves.size()) - 1;
  const auto weights = static_cast<int64_t>(t.targets.size());
  if (t.nodes.size() % 4 != 0 || t.splits.elements() != nodes || leaves < 0 || t.weights.elements() != weights) {
    return "the sizes of the lists differ";
  }
  auto is_place = [&](int32_t place) { return place < nodes && -1 - static_cast<int64_t>(place) < leaves; };
  if (!std::all_of(t.roots.begin(), t.roots.end(), is_place)) return "a root does not exist";
  for (int64_t n = 0; n < nodes; ++n) {
    const int32_t* node = t.nodes.data() + 4 * n;
    if (node[0] < 0 || (columns != kUnknownDim && node[0] >= columns)) {
      return fmt::format("a node compares feature {}, but the input has {}", node[0], columns);
    }
    const bool flags = node[1] >= 0 && (node[1] & ~(kTreeCompareMask | kTreeMissingHolds)) == 0 &&
                       (node[1] & kTreeCompareMask) <= kTreeNotEqual;
    if (!flags || !is_place(node[2]) || !is_place(node[3])) return fmt::format("node {} is invalid", n);
  }
  if (HasCycle(t.nodes)) return "a path has a cycle";
  if (t.leaves.front() != 0 || t.leaves.back() != weights || !std::is_sorted(t.leaves.begin(), t.leaves.end())) {
    return "the weights do not divide into leaves";
  }
  auto is_target = [targets](int32_t target) { return target >= 0 && target < targets; };
  if (!std::all_of(t.targets.begin(), t.targets.end(), is_target)) return "a leaf has a target that does not exist";
  const int64_t base = t.base.defined() ? t.base.elements() : 0;
  if (base > 1 && base != targets) return fmt::format("{} base values for {} targets", base, targets);
  return "";
}

// Stores the numbers as float64, or as float32.
Tensor RealTensor(const std::vector<double>& values, bool wide) {
  if (wide) return Tensor::Vector<double>(values);
  const std::vector<float> narrow(values.begin(), values.end());
  return Tensor::Vector<float>(narrow);
}

absl::StatusOr<Tensor> Widened(const Tensor& tensor, bool wide, HostAllocator& allocator) {
  if (!wide || tensor.dtype() == DType::kF64) return tensor;
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF64, tensor.shape(), allocator));
  std::copy(tensor.Data<float>().begin(), tensor.Data<float>().end(), out.MutableData<double>().begin());
  return out;
}

}  // namespace

absl::Status AddTreeInputs(Graph& graph, Node& node, const TreeLists& lists) {
  if (lists.nodes.size() / 4 > kMaxElements || lists.weights.size() > kMaxElements) {
    return BadTree(node, "there are too many nodes or weights");
  }
  if (node.inputs.size() != 1) return BadTree(node, fmt::format("has {} inputs, expected 1", node.inputs.size()));
  auto add = [&](std::string_view name, Tensor tensor) {
    node.inputs.push_back(graph.AddConstant(fmt::format("{}_{}", node.name, name), std::move(tensor)));
  };
  add("nodes", Tensor::Of<int32_t>({static_cast<int64_t>(lists.nodes.size() / 4), 4}, lists.nodes));
  add("splits", RealTensor(lists.splits, lists.wide_splits));
  add("roots", Tensor::Vector<int32_t>(lists.roots));
  add("leaves", Tensor::Vector<int32_t>(lists.leaves));
  add("targets", Tensor::Vector<int32_t>(lists.targets));
  add("weights", RealTensor(lists.weights, lists.wide_weights));
  if (!lists.base.empty()) add("base_values", RealTensor(lists.base, lists.wide_weights));
  return absl::OkStatus();
}

absl::Status PackTreeAttributes(Graph& graph, Node& node, std::string_view stem, int64_t targets) {
  if (node.inputs.size() > 1) return absl::OkStatus();
  const std::string prefix = stem == "class" ? "class_" : "target_";
  MGE_ASSIGN_OR_RETURN(const Ints trees, TakeInts(node, "nodes_treeids"));
  MGE_ASSIGN_OR_RETURN(const Ints ids, TakeInts(node, "nodes_nodeids"));
  MGE_ASSIGN_OR_RETURN(const Ints features, TakeInts(node, "nodes_featureids"));
  MGE_ASSIGN_OR_RETURN(const Ints holds, TakeInts(node, "nodes_truenodeids"));
  MGE_ASSIGN_OR_RETURN(const Ints fails, TakeInts(node, "nodes_falsenodeids"));
  MGE_ASSIGN_OR_RETURN(const Ints missing, TakeInts(node, "nodes_missing_value_tracks_true"));
  MGE_ASSIGN_OR_RETURN(const auto modes, TakeAttribute<Texts>(node, "nodes_modes"));
  MGE_ASSIGN_OR_RETURN(const Reals splits, TakeReals(node, "nodes_values"));
  MGE_RETURN_IF_ERROR(TakeReals(node, "nodes_hitrates").status());  // statistics of the training
  MGE_ASSIGN_OR_RETURN(const Reals base, TakeReals(node, "base_values"));
  LeafWeights w;
  MGE_ASSIGN_OR_RETURN(w.trees, TakeInts(node, prefix + "treeids"));
  MGE_ASSIGN_OR_RETURN(w.ids, TakeInts(node, prefix + "nodeids"));
  MGE_ASSIGN_OR_RETURN(w.targets, TakeInts(node, prefix + "ids"));
  MGE_ASSIGN_OR_RETURN(w.weights, TakeReals(node, prefix + "weights"));

  const size_t count = trees.size();
  for (size_t size : {ids.size(), features.size(), holds.size(), fails.size(), modes ? modes->size() : 0,
                      splits.values.size(), missing.empty() ? count : missing.size()}) {
    if (size != count) return BadTree(node, fmt::format("the lists nodes_... have {} and {} elements", count, size));
  }
  for (size_t size : {w.ids.size(), w.trees.size(), w.weights.values.size()}) {
    if (size == w.targets.size()) continue;
    return BadTree(node, fmt::format("the lists {}... have {} and {} elements", prefix, w.targets.size(), size));
  }
  if (count == 0) return BadTree(node, "has no nodes");
  if (count > kMaxElements) return BadTree(node, "there are too many nodes");

  NodeIndex index;
  MGE_RETURN_IF_ERROR(index.Build(node, trees, ids));
  std::vector<int32_t> place(count), leaf_of(count, -1);
  TreeLists lists;
  int32_t inner = 0, leaves = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool leaf = (*modes)[i] == "LEAF";
    if (leaf) leaf_of[i] = leaves;
    place[i] = leaf ? -1 - leaves++ : inner++;
    if (i == 0 || trees[i] != trees[i - 1]) lists.roots.push_back(place[i]);
  }
  lists.nodes.reserve(4 * static_cast<size_t>(inner));
  for (size_t i = 0; i < count; ++i) {
    if (place[i] < 0) continue;
    const auto mode = std::find(std::begin(kModes), std::end(kModes), (*modes)[i]);
    if (mode == std::end(kModes)) return BadTree(node, fmt::format("\"{}\" is not a mode", EscapeControl((*modes)[i])));
    if (features[i] < 0 || features[i] > std::numeric_limits<int32_t>::max()) {
      return BadTree(node, fmt::format("a node compares feature {}", features[i]));
    }
    MGE_ASSIGN_OR_RETURN(const int32_t yes, index.Find(node, trees[i], holds[i]));
    MGE_ASSIGN_OR_RETURN(const int32_t no, index.Find(node, trees[i], fails[i]));
    const bool nan = !missing.empty() && missing[i] != 0;
    lists.nodes.push_back(static_cast<int32_t>(features[i]));
    lists.nodes.push_back(static_cast<int32_t>(mode - std::begin(kModes)) | (nan ? kTreeMissingHolds : 0));
    lists.nodes.push_back(place[yes]);
    lists.nodes.push_back(place[no]);
    lists.splits.push_back(splits.values[i]);
  }
  if (HasCycle(lists.nodes)) return BadTree(node, "a path through a tree has a cycle");
  MGE_RETURN_IF_ERROR(AddWeights(node, index, w, leaf_of, leaves, targets, lists));
  lists.wide_splits = splits.wide;
  lists.wide_weights = w.weights.wide || base.wide;
  lists.base = base.values;
  return AddTreeInputs(graph, node, lists);
}

absl::StatusOr<Trees> ReadTrees(EvalContext& ctx, int64_t columns, int64_t targets) {
  Trees t;
  t.nodes = ctx.input(kTreeNodes).Data<int32_t>();
  t.roots = ctx.input(kTreeRoots).Data<int32_t>();
  t.leaves = ctx.input(kTreeLeaves).Data<int32_t>();
  t.targets = ctx.input(kTreeTargets).Data<int32_t>();
  t.wide = ctx.input(kTreeX).dtype() == DType::kF64;
  for (int i : {kTreeSplits, kTreeWeights}) t.wide = t.wide || ctx.input(i).dtype() == DType::kF64;
  t.wide = t.wide || (ctx.has_input(kTreeBase) && ctx.input(kTreeBase).dtype() == DType::kF64);
  MGE_ASSIGN_OR_RETURN(t.splits, Widened(ctx.input(kTreeSplits), t.wide, ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(t.weights, Widened(ctx.input(kTreeWeights), t.wide, ctx.allocator()));
  if (ctx.has_input(kTreeBase)) {
    MGE_ASSIGN_OR_RETURN(t.base, Widened(ctx.input(kTreeBase), t.wide, ctx.allocator()));
  }
  if (std::string problem = Problem(t, columns, targets); !problem.empty()) return ctx.Invalid(std::move(problem));
  return t;
}

void ReadWeightSigns(std::span<const int32_t> targets, const Tensor& weights, TreeClasses& classes) {
  const bool one = std::all_of(targets.begin(), targets.end(), [&](int32_t t) { return t == targets[0]; });
  classes.binary = classes.labels.count() == 2 && !targets.empty() && one;
  DispatchFloating(weights.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::span<const T> list = weights.Data<T>();
    classes.positive = std::none_of(list.begin(), list.end(), [](T w) { return static_cast<Compute<T>>(w) < 0; });
  });
}

void FinishTreeRow(const TreeClasses& c, std::span<const float> scores, std::span<const uint8_t> scored, int64_t row,
                   Tensor& y, std::span<float> out) {
  std::copy(scores.begin(), scores.end(), out.begin());
  const auto count = static_cast<int64_t>(scores.size());
  if (count != 2) {
    int64_t best = -1;
    for (int64_t i = 0; i < count; ++i) {
      if (scored[i] && (best < 0 || scores[i] > scores[best])) best = i;
    }
    SetLabel(y, row, c.labels, std::max<int64_t>(best, 0));
    return TransformScores(c.transform, out);
  }
  if (scored[0] && scored[1]) {
    SetLabel(y, row, c.labels, scores[1] > scores[0] ? 1 : 0);
    return TransformScores(c.transform, out);
  }
  // The only score is that of the second label, whatever its class. Both columns follow from a score of the first class.
  const float score = scored[1] ? scores[1] : scores[0];
  const bool probability = c.binary && c.positive;
  SetLabel(y, row, c.labels, score > (probability ? 0.5f : 0.0f) ? 1 : 0);
  if (scored[1]) return TransformScores(c.transform, out);
  TransformBinaryScore(c.transform, score, out);
  if (probability && c.transform == PostTransform::kNone) out[0] = 1 - score;
}

}  // namespace mge
