// SPDX-License-Identifier: Apache-2.0
#include "support/trees.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

namespace mge::cpu {
namespace {

// The flags of a node of the operator.
enum Compare : int32_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual };
constexpr int32_t kCompareMask = 7, kMissingHolds = 8;
constexpr size_t kMostNodes = size_t{1} << 30;
constexpr uint32_t kUnplaced = UINT32_MAX;

template <typename Real>
std::vector<Real> Reals(const Value& value) {
  if (value.dtype() == MGE_DTYPE_F32) return {value.data<float>().begin(), value.data<float>().end()};
  std::vector<Real> out;
  for (double v : value.data<double>()) out.push_back(static_cast<Real>(v));
  return out;
}

// The condition of a node as "at most split" or, if `strict`, "below split".
template <typename Real>
struct Condition {
  Real split;
  bool strict, nan;
  int32_t holds, fails;  // places, see the operator
};

// Returns the condition of a node that compares for order.
template <typename Real>
Condition<Real> ConditionOf(const int32_t* node, Real split) {
  const int32_t compare = node[1] & kCompareMask;
  Condition<Real> c = {split, compare == kLess || compare == kGreaterEqual, (node[1] & kMissingHolds) != 0, node[2],
                       node[3]};
  if (compare == kGreaterEqual || compare == kGreater) {  // the opposite condition, which NaN fulfils in the opposite case
    std::swap(c.holds, c.fails);
    c.nan = !c.nan;
  }
  return c;
}

// Places the nodes of the operator level by level, in the form that the kernel walks.
template <typename Real>
class Builder {
 public:
  Builder(std::span<const int32_t> nodes, std::vector<Real> splits, size_t leaves, Forest<Real>& out)
      : given_(nodes), splits_(std::move(splits)), place_(nodes.size() / 4, kUnplaced), leaf_(leaves, kUnplaced), out_(out) {
    bool order = false, below = false;
    for (size_t n = 0; n < place_.size(); ++n) {
      const int32_t compare = given_[4 * n + 1] & kCompareMask;
      const bool strict = compare == kLess || compare == kGreaterEqual;
      below = below || strict;
      order = order || !strict;
    }
    out_.strict = below && !order;
  }

  void AddTree(int32_t root) {
    out_.roots.push_back(Place(root));
    while (done_ < queue_.size()) Expand(queue_[done_++]);
  }

 private:
  // Returns the index of a place. A new inner node is filled later.
  uint32_t Place(int32_t place) {
    uint32_t& index =
        place < 0 ? leaf_[static_cast<size_t>(-1 - static_cast<int64_t>(place))] : place_[static_cast<size_t>(place)];
    if (index != kUnplaced) return index;
    index = Add();
    if (place >= 0) {
      queue_.push_back(place);
    } else {
      TreeNode<Real>& leaf = out_.nodes[index];
      leaf = {0, 0, {index, index}};
      const auto number = static_cast<uint32_t>(-1 - static_cast<int64_t>(place));
      if (out_.single) {
        leaf.split = out_.weights[number];
      } else {
        std::memcpy(&leaf.split, &number, sizeof(number));
      }
    }
    return index;
  }
  uint32_t Add() {
    out_.nodes.push_back({});
    return static_cast<uint32_t>(out_.nodes.size() - 1);
  }
  void Set(uint32_t index, int32_t feature, Real split, bool nan, uint32_t holds, uint32_t fails) {
    out_.nodes[index] = {split, static_cast<uint32_t>(feature) | (nan ? kNanHolds : 0), {fails, holds}};
    out_.nan = out_.nan || nan;
  }
  static Real Below(Real split) {
    const Real infinity = std::numeric_limits<Real>::infinity();
    // Nothing is below -infinity: no feature is at most NaN.
    return split == -infinity ? std::numeric_limits<Real>::quiet_NaN() : std::nextafter(split, -infinity);
  }

  void Expand(int32_t number) {
    const int32_t* node = given_.data() + 4 * static_cast<size_t>(number);
    const uint32_t index = place_[static_cast<size_t>(number)];
    const Real split = splits_[static_cast<size_t>(number)];
    const int32_t compare = node[1] & kCompareMask;
    if (compare < kEqual) {
      const Condition<Real> c = ConditionOf(node, split);
      const uint32_t holds = Place(c.holds), fails = Place(c.fails);
      return Set(index, node[0], c.strict && !out_.strict ? Below(split) : split, c.nan, holds, fails);
    }
    // "Equal" is "at most split, but not at most the number below it". NaN is not equal, and takes the side of the flag.
    const bool nan = (node[1] & kMissingHolds) != 0 && compare == kEqual;
    const uint32_t holds = Place(compare == kEqual ? node[2] : node[3]),
                   fails = Place(compare == kEqual ? node[3] : node[2]);
    const uint32_t second = Add();
    Set(index, node[0], split, nan, second, fails);
    Set(second, node[0], Below(split), false, fails, holds);
  }

  std::span<const int32_t> given_;
  std::vector<Real> splits_;
  std::vector<uint32_t> place_, leaf_;  // index of each inner node and leaf
  std::vector<int32_t> queue_;          // inner nodes whose index is known
  size_t done_ = 0;                     // of the queue
  Forest<Real>& out_;
};

// Returns whether all places exist and no path has a cycle.
bool Valid(std::span<const int32_t> nodes, std::span<const int32_t> roots, int64_t leaves, int64_t columns) {
  const auto count = static_cast<int64_t>(nodes.size() / 4);
  auto is_place = [&](int32_t place) { return place < count && -1 - static_cast<int64_t>(place) < leaves; };
  if (!std::ranges::all_of(roots, is_place)) return false;
  std::vector<int32_t> predecessors(static_cast<size_t>(count), 0), free;
  for (int64_t n = 0; n < count; ++n) {
    const int32_t* node = nodes.data() + 4 * n;
    if (node[0] < 0 || node[0] >= columns || (node[1] & kCompareMask) > kNotEqual) return false;
    for (int side : {2, 3}) {
      if (!is_place(node[side])) return false;
      if (node[side] >= 0) ++predecessors[static_cast<size_t>(node[side])];
    }
  }
  for (int64_t n = 0; n < count; ++n) {
    if (predecessors[static_cast<size_t>(n)] == 0) free.push_back(static_cast<int32_t>(n));
  }
  int64_t removed = 0;
  for (; !free.empty(); ++removed) {
    const int32_t* node = nodes.data() + 4 * static_cast<size_t>(free.back());
    free.pop_back();
    for (int side : {2, 3}) {
      if (node[side] >= 0 && --predecessors[static_cast<size_t>(node[side])] == 0) free.push_back(node[side]);
    }
  }
  return removed == count;
}

}  // namespace

template <typename Real>
std::shared_ptr<const Forest<Real>> MakeForest(const Node& node) {
  const auto nodes = node.input(1).data<int32_t>(), roots = node.input(3).data<int32_t>();
  const auto leaves = node.input(4).data<int32_t>(), targets = node.input(5).data<int32_t>();
  const int64_t columns = node.input(0).dim(-1), target_count = node.output(0).dim(-1);
  const auto leaf_count = static_cast<int64_t>(leaves.size()) - 1;
  auto out = std::make_shared<Forest<Real>>();
  out->weights = Reals<Real>(node.input(6));
  const bool sizes = leaf_count >= 0 && nodes.size() % 4 == 0 && node.input(2).elements() == nodes.size() / 4 &&
                     out->weights.size() == targets.size() && nodes.size() < kMostNodes && leaves.size() < kMostNodes;
  if (!sizes || !Valid(nodes, roots, leaf_count, columns)) return nullptr;
  if (leaves.front() != 0 || leaves.back() != static_cast<int64_t>(targets.size()) || !std::ranges::is_sorted(leaves)) {
    return nullptr;
  }
  for (int32_t target : targets) {
    if (target < 0 || target >= target_count) return nullptr;
  }
  out->leaves.assign(leaves.begin(), leaves.end());
  out->targets.assign(targets.begin(), targets.end());
  out->single = target_count == 1 && leaf_count == static_cast<int64_t>(targets.size());
  for (size_t i = 0; i < out->leaves.size(); ++i) out->single = out->single && out->leaves[i] == i;
  if (node.has_input(7)) {
    out->base = Reals<Real>(node.input(7));
    if (out->base.size() == 1) out->base.assign(static_cast<size_t>(target_count), out->base[0]);
    if (!out->base.empty() && static_cast<int64_t>(out->base.size()) != target_count) return nullptr;
  }
  out->nodes.reserve(nodes.size() / 4 + static_cast<size_t>(leaf_count));
  Builder<Real> builder(nodes, Reals<Real>(node.input(2)), static_cast<size_t>(leaf_count), *out);
  for (int32_t root : roots) builder.AddTree(root);
  return out;
}

template std::shared_ptr<const Forest<float>> MakeForest<float>(const Node& node);
template std::shared_ptr<const Forest<double>> MakeForest<double>(const Node& node);

}  // namespace mge::cpu
