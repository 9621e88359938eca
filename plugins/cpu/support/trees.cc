// SPDX-License-Identifier: Apache-2.0
#include "support/trees.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

namespace mge::cpu {
namespace {

// The flags of a node of the operator.
enum Compare : int32_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual };
constexpr int32_t kCompareMask = 7, kMissingHolds = 8;
constexpr size_t kMostNodes = size_t{1} << 25;  // of the operator; each becomes at most four
constexpr size_t kUnplaced = SIZE_MAX;

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

// Places the nodes of the operator level by level, in the form that the kernel walks. The two nodes behind a condition are
// neighbours. Where paths join, all but the first lead over a node whose condition always holds.
template <typename Real>
class Builder {
 public:
  Builder(std::span<const int32_t> nodes, std::vector<Real> splits, Forest<Real>& out)
      : given_(nodes), splits_(std::move(splits)), place_(nodes.size() / 4, kUnplaced), out_(out) {
    bool order = false, below = false;
    for (size_t n = 0; n < place_.size(); ++n) {
      const int32_t compare = given_[4 * n + 1] & kCompareMask;
      const bool strict = compare == kLess || compare == kGreaterEqual;
      below = below || strict;
      order = order || !strict;
      out_.features.push_back(static_cast<uint32_t>(given_[4 * n]));
    }
    out_.strict = below && !order;
    std::ranges::sort(out_.features);
    out_.features.erase(std::ranges::unique(out_.features).begin(), out_.features.end());
  }

  void AddTree(int32_t root) {
    const size_t index = Add(1);
    out_.roots.push_back(OffsetOf(index));
    open_ = {{root, index}};
    for (size_t i = 0; i < open_.size(); ++i) Expand(open_[i].first, open_[i].second);
  }

 private:
  static uint32_t OffsetOf(size_t index) { return static_cast<uint32_t>(index * sizeof(TreeNode<Real>)); }
  // The offset of a feature in a group of rows. The additional feature lies behind the others.
  uint32_t FeatureOf(int32_t column) const {
    const auto at = std::ranges::lower_bound(out_.features, static_cast<uint32_t>(column));
    return GroupOffset(static_cast<size_t>(at - out_.features.begin()));
  }
  static uint32_t GroupOffset(size_t feature) { return static_cast<uint32_t>(feature * kTreeLanes * sizeof(Real)); }

  size_t Add(size_t count) {
    out_.nodes.resize(out_.nodes.size() + count);
    return out_.nodes.size() - count;
  }
  // Sets a condition and returns the first of the two nodes behind it.
  size_t Set(size_t index, int32_t column, Real split, bool nan) {
    const size_t next = Add(2);
    out_.nodes[index] = {split, FeatureOf(column) + (nan ? kNanHolds : 0), OffsetOf(next), 0};
    out_.nan = out_.nan || nan;
    return next;
  }
  void SetAlways(size_t index, size_t next, Real value) {
    const Real infinity = std::numeric_limits<Real>::infinity();
    out_.nodes[index] = {infinity, GroupOffset(out_.features.size()), OffsetOf(next), value};
  }
  static Real Below(Real split) {
    const Real infinity = std::numeric_limits<Real>::infinity();
    // Nothing is below -infinity: no feature is at most NaN.
    return split == -infinity ? std::numeric_limits<Real>::quiet_NaN() : std::nextafter(split, -infinity);
  }

  // Fills the node `index` for a place of the operator.
  void Expand(int32_t place, size_t index) {
    if (place < 0) {
      const auto number = static_cast<uint32_t>(-1 - static_cast<int64_t>(place));
      Real value = 0;
      if (out_.single) {
        value = out_.weights[number];
      } else {
        std::memcpy(&value, &number, sizeof(number));
      }
      return SetAlways(index, index, value);
    }
    const auto n = static_cast<size_t>(place);
    if (place_[n] != kUnplaced) return SetAlways(index, place_[n], 0);
    place_[n] = index;
    const int32_t* node = given_.data() + 4 * n;
    const int32_t compare = node[1] & kCompareMask;
    if (compare < kEqual) {
      const Condition<Real> c = ConditionOf(node, splits_[n]);
      const size_t next = Set(index, node[0], c.strict && !out_.strict ? Below(c.split) : c.split, c.nan);
      open_.push_back({c.holds, next});
      open_.push_back({c.fails, next + 1});
      return;
    }
    // "Equal" is "at most split, but not at most the number below it". NaN is not equal, and takes the side of the flag.
    const bool equal = compare == kEqual, nan = equal && (node[1] & kMissingHolds) != 0;
    const int32_t same = node[equal ? 2 : 3], other = node[equal ? 3 : 2];
    const size_t first = Set(index, node[0], splits_[n], nan);
    open_.push_back({other, first + 1});
    const size_t second = Set(first, node[0], Below(splits_[n]), false);
    open_.push_back({other, second});
    open_.push_back({same, second + 1});
  }

  std::span<const int32_t> given_;
  std::vector<Real> splits_;
  std::vector<size_t> place_;                     // index of each inner node
  std::vector<std::pair<int32_t, size_t>> open_;  // places of the tree, and the indices of their nodes
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
                     out->weights.size() == targets.size() && nodes.size() / 4 + roots.size() < kMostNodes;
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
  out->nodes.reserve(nodes.size() / 2 + roots.size());
  Builder<Real> builder(nodes, Reals<Real>(node.input(2)), *out);
  for (int32_t root : roots) builder.AddTree(root);
  return out;
}

template std::shared_ptr<const Forest<float>> MakeForest<float>(const Node& node);
template std::shared_ptr<const Forest<double>> MakeForest<double>(const Node& node);

}  // namespace mge::cpu
