// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "core/ops/families/movement.h"
#include "core/ops/families/trees.h"

namespace mge::op_tree_ensemble {
namespace {

constexpr uint8_t kMember = 6;  // the mode that compares with a set; it becomes a chain of comparisons with its elements

absl::Status Bad(std::string what) { return BadNode(std::move(what)); }

// The attributes of operator set 5.
struct Given {
  std::shared_ptr<Ints> features, holds, fails, holds_leaf, fails_leaf, missing, targets, roots;
  std::shared_ptr<Tensor> modes, splits, weights, members;
};

absl::StatusOr<Given> Take(Node& node) {
  Given g;
  MGE_ASSIGN_OR_RETURN(g.features, TakeAttribute<Ints>(node, "nodes_featureids"));
  MGE_ASSIGN_OR_RETURN(g.holds, TakeAttribute<Ints>(node, "nodes_truenodeids"));
  MGE_ASSIGN_OR_RETURN(g.fails, TakeAttribute<Ints>(node, "nodes_falsenodeids"));
  MGE_ASSIGN_OR_RETURN(g.holds_leaf, TakeAttribute<Ints>(node, "nodes_trueleafs"));
  MGE_ASSIGN_OR_RETURN(g.fails_leaf, TakeAttribute<Ints>(node, "nodes_falseleafs"));
  MGE_ASSIGN_OR_RETURN(g.missing, TakeAttribute<Ints>(node, "nodes_missing_value_tracks_true"));
  MGE_ASSIGN_OR_RETURN(g.targets, TakeAttribute<Ints>(node, "leaf_targetids"));
  MGE_ASSIGN_OR_RETURN(g.roots, TakeAttribute<Ints>(node, "tree_roots"));
  MGE_ASSIGN_OR_RETURN(g.modes, TakeAttribute<Tensor>(node, "nodes_modes"));
  MGE_ASSIGN_OR_RETURN(g.splits, TakeAttribute<Tensor>(node, "nodes_splits"));
  MGE_ASSIGN_OR_RETURN(g.weights, TakeAttribute<Tensor>(node, "leaf_weights"));
  MGE_ASSIGN_OR_RETURN(g.members, TakeAttribute<Tensor>(node, "membership_values"));
  MGE_RETURN_IF_ERROR(TakeAttribute<Tensor>(node, "nodes_hitrates").status());  // statistics of the training
  if (!g.features || !g.holds || !g.fails || !g.holds_leaf || !g.fails_leaf || !g.targets || !g.roots || !g.modes ||
      !g.splits || !g.weights) {
    return Bad("one of the required attributes nodes_..., leaf_... and tree_roots is absent");
  }
  const auto count = static_cast<int64_t>(g.features->size());
  auto is = [](const auto& list, int64_t size) { return static_cast<int64_t>(list->size()) == size; };
  if (!is(g.holds, count) || !is(g.fails, count) || !is(g.holds_leaf, count) || !is(g.fails_leaf, count) ||
      g.modes->elements() != count || g.splits->elements() != count || (g.missing && !is(g.missing, count)) ||
      !is(g.targets, g.weights->elements()) || count > std::numeric_limits<int32_t>::max() / 8) {
    return Bad("the lists of the nodes, or those of the leaves, have different sizes");
  }
  if (g.modes->dtype() != DType::kU8) return Bad("nodes_modes must be uint8");
  return g;
}

absl::StatusOr<std::vector<double>> Reals(std::string_view name, const Tensor& tensor) {
  std::vector<double> out;
  const bool known = DispatchFloating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T v : tensor.Data<T>()) out.push_back(static_cast<double>(static_cast<Compute<T>>(v)));
  });
  if (!known) return Bad(fmt::format("{} is {}", name, DTypeName(tensor.dtype())));
  return out;
}

// Returns the sets of the member nodes, in order: a NaN ends each.
absl::StatusOr<std::vector<std::vector<double>>> Sets(const Given& g) {
  std::vector<std::vector<double>> sets(1);
  if (g.members) {
    MGE_ASSIGN_OR_RETURN(const std::vector<double> values, Reals("membership_values", *g.members));
    for (double v : values) {
      if (std::isnan(v)) {
        sets.emplace_back();
      } else {
        sets.back().push_back(v);
      }
    }
  }
  return sets;
}

absl::StatusOr<int32_t> PlaceOf(int64_t index, bool leaf, int64_t nodes, int64_t leaves) {
  if (index < 0 || index >= (leaf ? leaves : nodes))
    return Bad(fmt::format("a node leads to {} {}", leaf ? "leaf" : "node", index));
  return static_cast<int32_t>(leaf ? -1 - index : index);
}

absl::Status Pack(const Given& g, TreeLists& lists) {
  const auto count = static_cast<int64_t>(g.features->size()), leaves = static_cast<int64_t>(g.targets->size());
  MGE_ASSIGN_OR_RETURN(lists.splits, Reals("nodes_splits", *g.splits));
  MGE_ASSIGN_OR_RETURN(lists.weights, Reals("leaf_weights", *g.weights));
  MGE_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> sets, Sets(g));
  lists.wide_splits = g.splits->dtype() == DType::kF64;
  lists.wide_weights = g.weights->dtype() == DType::kF64;
  for (int64_t i = 0; i < leaves; ++i) {
    lists.leaves.push_back(static_cast<int32_t>(i + 1));
    if ((*g.targets)[i] < 0 || (*g.targets)[i] > std::numeric_limits<int32_t>::max())
      return Bad("a leaf has no valid target");
    lists.targets.push_back(static_cast<int32_t>((*g.targets)[i]));
  }
  for (int64_t root : *g.roots) {
    MGE_ASSIGN_OR_RETURN(const int32_t place, PlaceOf(root, false, count, leaves));
    lists.roots.push_back(place);
  }
  lists.nodes.resize(4 * static_cast<size_t>(count));
  size_t set = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t mode = g.modes->Data<uint8_t>()[i];
    if (mode > kMember) return Bad(fmt::format("{} is not a mode of a node", mode));
    if ((*g.features)[i] < 0 || (*g.features)[i] > std::numeric_limits<int32_t>::max())
      return Bad("a node has no valid feature");
    const auto feature = static_cast<int32_t>((*g.features)[i]);
    MGE_ASSIGN_OR_RETURN(const int32_t yes, PlaceOf((*g.holds)[i], (*g.holds_leaf)[i] != 0, count, leaves));
    MGE_ASSIGN_OR_RETURN(const int32_t no, PlaceOf((*g.fails)[i], (*g.fails_leaf)[i] != 0, count, leaves));
    const int32_t nan = g.missing && (*g.missing)[i] != 0 ? kTreeMissingHolds : 0;
    if (mode != kMember) {
      const int32_t row[] = {feature, mode | nan, yes, no};
      std::copy_n(row, 4, lists.nodes.begin() + 4 * i);
      continue;
    }
    if (set >= sets.size()) return Bad("membership_values has fewer sets than there are nodes that compare with one");
    // An empty set is a comparison with NaN, which never holds.
    std::vector<double> members = sets[set++];
    if (members.empty()) members.push_back(std::numeric_limits<double>::quiet_NaN());
    for (size_t m = 0; m < members.size(); ++m) {
      const auto at = m == 0 ? static_cast<size_t>(i) : lists.splits.size();
      if (m > 0) {
        lists.splits.push_back(0);
        lists.nodes.resize(lists.nodes.size() + 4);
      }
      lists.splits[at] = members[m];
      const auto next = static_cast<int32_t>(lists.splits.size());
      const int32_t row[] = {feature, kTreeEqual | (m == 0 ? nan : 0), yes, m + 1 < members.size() ? next : no};
      std::copy_n(row, 4, lists.nodes.begin() + static_cast<int64_t>(4 * at));
    }
  }
  return absl::OkStatus();
}

absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.inputs.size() > 1) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(const Given given, Take(node));
  TreeLists lists;
  MGE_RETURN_IF_ERROR(Pack(given, lists));
  if (!node.attrs.Has("n_targets")) {
    int32_t most = 0;
    for (int32_t target : lists.targets) most = std::max(most, target);
    node.attrs.Set("n_targets", int64_t{most} + 1);
  }
  return AddTreeInputs(graph, node, lists);
}

absl::StatusOr<int64_t> Targets(const Attributes& attrs) {
  const int64_t targets = attrs.Int("n_targets");
  if (targets >= 1 && targets <= kMaxTreeTargets) return targets;
  return Bad(fmt::format("n_targets is {}", targets));
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_ASSIGN_OR_RETURN(int64_t targets, Targets(ctx.attrs()));
  ctx.SetOutput(0, MakeType(ctx.input(0).dtype, {shape.rows, targets}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(kTreeX);
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  MGE_ASSIGN_OR_RETURN(const int64_t targets, Targets(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const Trees trees, ReadTrees(ctx, shape.columns, targets));
  const int64_t aggregate = ctx.attrs().Int("aggregate_function"), transform = ctx.attrs().Int("post_transform");
  if (aggregate < 0 || aggregate > 3) return ctx.Invalid(fmt::format("aggregate_function is {}", aggregate));
  if (transform < 0 || transform > 4) return ctx.Invalid(fmt::format("post_transform is {}", transform));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), {shape.rows, targets}));
  auto run = [&](auto real) {
    using Real = decltype(real);
    Floats transformed(static_cast<size_t>(targets));
    return ForEachTreeRow<Real>(
        ctx, trees, shape, targets, static_cast<TreeAggregate>(aggregate), [&](int64_t row, TreeScores<Real>& s) {
          for (int64_t t = 0; t < targets; ++t) s.scores[t] += TreeBase<Real>(trees, t);
          if (transform != 0) {
            std::copy(s.scores.begin(), s.scores.end(), transformed.begin());
            TransformScores(static_cast<PostTransform>(transform), transformed);
            std::copy(transformed.begin(), transformed.end(), s.scores.begin());
          }
          DispatchFloating(y->dtype(), [&](auto tag) {
            using T = typename decltype(tag)::type;
            for (int64_t t = 0; t < targets; ++t) {
              y->MutableData<T>()[row * targets + t] = static_cast<T>(static_cast<Compute<T>>(s.scores[t]));
            }
          });
        });
  };
  return trees.wide ? run(double()) : run(float());
}

}  // namespace

MGE_OP(tree_ensemble) = {
    .name = "TreeEnsemble",
    .domain = kMlDomain,
    .doc =
        "The scores of an ensemble of decision trees. The host packs the attributes of a model into the constants after X. "
        "A row of nodes is a feature, a comparison with an element of splits (0: <=, 1: <, 2: >=, 3: >, 4: ==, 5: !=, plus "
        "8 if NaN fulfils it), the place if it is fulfilled and the place if not. A place, also in roots, is a node or "
        "-1 - a leaf. An element of leaves is the first of the leaf's weights, whose scores are in targets. "
        "aggregate_function is 0 for the average of the trees, 1 for the sum, 2 and 3 for the extremes.",
    .inputs = TreeInputs({DType::kF32, DType::kF64, DType::kF16}),
    .outputs = {{"Y"}},
    .attrs = {{"aggregate_function", 1, "0: mean, 1: sum, 2: minimum, 3: maximum"},
              {"n_targets", 1, "the number of targets"},
              {"post_transform", 0, "0: none, 1: softmax, 2: logistic, 3: softmax without zeros, 4: probit"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .since = 5,
    .examples = {"(T[67,3], int32[3,4]<0,0,1,2, 1,0,-1,-2, 2,8,-3,-4>, float32[3]<0.25,-0.5,1.0>, int32[1]<0>, "
                 "int32[5]<0,1,2,3,4>, int32[4]<0>, float32[4]<1,2,4,8>) {n_targets=1}",
                 "(T[2,3], int32[3,4]<0,1,1,2, 1,2,-1,-2, 2,11,-3,-4>, float32[3]<0.25,-0.5,1.0>, int32[3]<0,1,-3>, "
                 "int32[5]<0,2,3,4,6>, int32[6]<0,1,1,0,0,1>, float32[6]<1,2,4,8,16,32>, float32[2]<0.5,0.25>) "
                 "{n_targets=2, aggregate_function=0}",
                 "(T[5,2], int32[2,4]<0,4,-1,1, 1,13,-2,-1>, float32[2]<1,0>, int32[1]<0>, int32[3]<0,1,2>, int32[2]<0>, "
                 "float32[2]<-1,1>) {n_targets=1, aggregate_function=3}"},
};

}  // namespace mge::op_tree_ensemble
