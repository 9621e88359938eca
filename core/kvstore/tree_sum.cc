// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/tree_sum.h"

#include <algorithm>
#include <utility>

#include "core/ops/rewrites/node_adder.h"

namespace mge {
namespace {

// Adds the nodes of one replica.
class Adder {
 public:
  Adder(Graph& graph, const TreeSum& how, int replica)
      : graph_(graph), b_(graph, "replicas"), how_(how), replica_(replica), loads_(how.packing.trees.size(), 0) {}

  std::vector<ValueId> Run(std::span<const ValueId> values) {
    for (ValueId v : values) Cut(v);
    for (int level = how_.depth; level > 0; --level) Exchange(level, /*down=*/false);
    for (int level = 1; level <= how_.depth; ++level) Exchange(level, /*down=*/true);
    std::vector<ValueId> sums;
    for (size_t i = 0; i < items_.size();) {
      std::vector<ValueId> parts;
      for (size_t left = items_[i].parts; left > 0; --left) parts.push_back(items_[i++].value);
      sums.push_back(parts.size() == 1 ? parts[0] : b_.Add("Concat", std::move(parts), IntAttribute("axis", 0)));
    }
    return sums;
  }

 private:
  // An array, or a slice of one.
  struct Item {
    ValueId value;  // the sum so far
    size_t tree;
    size_t parts;  // number of slices of its array
  };

  // Adds the items of an array.
  void Cut(ValueId v) {
    const TensorType type = graph_.value(v).type;
    const std::vector<PackedTree>& trees = how_.packing.trees;
    if (!how_.Cuts(type)) return items_.push_back({v, TreeFor(Elements(type.dims)), 1});
    std::vector<int64_t> lengths;
    const int64_t rows = type.dims[0] / how_.packing.shares();
    for (const PackedTree& tree : trees) lengths.push_back(rows * tree.share);
    lengths.back() += type.dims[0] % how_.packing.shares();
    const auto slices = b_.Add("Split", {v, b_.Integers(lengths)}, trees.size(), IntAttribute("axis", 0));
    for (size_t i = 0; i < trees.size(); ++i) items_.push_back({slices[i], i, trees.size()});
  }
  // Returns the tree for an array that is not cut.
  size_t TreeFor(int64_t elements) {
    if (!how_.spreads) return 0;
    auto load_with = [&](size_t tree) {
      return (loads_[tree] + static_cast<double>(elements)) / static_cast<double>(how_.packing.trees[tree].share);
    };
    size_t best = 0;
    for (size_t i = 1; i < loads_.size(); ++i) {
      if (load_with(i) < load_with(best)) best = i;
    }
    loads_[best] += static_cast<double>(elements);
    return best;
  }

  // Copies over the edges of a level: up to the parents, which add, or down to the children.
  void Exchange(int level, bool down) {
    std::vector<ValueId> inputs;
    Ints to, to_key, from, from_key, like;
    std::vector<size_t> received;  // items
    auto add_input = [&](ValueId v, int64_t peer, int64_t key) {
      inputs.push_back(v);
      to.push_back(peer);
      to_key.push_back(key);
    };
    if (order_ != kNone) add_input(order_, -1, 0);
    ++round_;
    for (size_t i = 0; i < items_.size(); ++i) {
      for (const TreeEdge& edge : how_.packing.trees[items_[i].tree].edges) {
        if (edge.level != level) continue;
        const auto key = round_ * static_cast<int64_t>(items_.size()) + static_cast<int64_t>(i);
        const int sender = down ? edge.parent : edge.child, receiver = down ? edge.child : edge.parent;
        if (sender == replica_) add_input(items_[i].value, receiver, key);
        if (receiver != replica_) continue;
        like.push_back(static_cast<int64_t>(inputs.size()));
        add_input(items_[i].value, -1, 0);
        from.push_back(sender);
        from_key.push_back(key);
        received.push_back(i);
      }
    }
    if (inputs.size() == (order_ != kNone)) return;
    // The replicas wait for each other, so each one must run its exchanges in the order of the levels. A last output, which
    // the next exchange reads, keeps that order.
    if (order_ == kNone) add_input(order_ = b_.Constant(Tensor::Scalar<int32_t>(0)), -1, 0);
    like.push_back(order_ == inputs[0] ? 0 : static_cast<int64_t>(inputs.size()) - 1);
    from.push_back(-1);
    from_key.push_back(0);
    Attributes attrs;
    for (auto& [name, list] : {std::pair("to", &to), std::pair("to_key", &to_key), std::pair("from", &from),
                               std::pair("from_key", &from_key), std::pair("like", &like)}) {
      attrs.Set(name, *list);
    }
    const std::vector<ValueId> outputs = b_.AddOurs("Exchange", std::move(inputs), from.size(), std::move(attrs));
    order_ = outputs.back();
    for (size_t k = 0; k < received.size(); ++k) {
      ValueId& value = items_[received[k]].value;
      value = down ? outputs[k] : b_.Add("Add", {value, outputs[k]});
    }
  }

  Graph& graph_;
  NodeAdder b_;
  const TreeSum& how_;
  const int replica_;
  std::vector<double> loads_;  // elements of the arrays of each tree that are not cut
  std::vector<Item> items_;
  ValueId order_ = kNone;  // the last output of the latest exchange
  int64_t round_ = 0;
};

}  // namespace

TreeSum::TreeSum(TreePacking trees, bool spreads_arrays, int64_t elements)
    : packing(std::move(trees)), spreads(spreads_arrays), slice_above(elements) {
  for (const PackedTree& tree : packing.trees) depth = std::max(depth, tree.depth());
}

bool TreeSum::Cuts(const TensorType& type) const {
  if (packing.trees.size() < 2 || type.dims.empty()) return false;
  return Elements(type.dims) > slice_above && type.dims[0] >= 2 * packing.shares();
}

absl::StatusOr<std::vector<ValueId>> TreeSum::Add(Graph& graph, std::span<const ValueId> values, int replica) const {
  return Adder(graph, *this, replica).Run(values);
}

}  // namespace mge
