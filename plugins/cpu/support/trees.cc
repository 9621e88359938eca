// SPDX-License-Identifier: Apache-2.0
#include "support/trees.h"

#include <algorithm>
#include <span>
#include <utility>

namespace mge::cpu {
namespace {

// The flags of a node of the operator.
enum Compare : int32_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual };
constexpr int32_t kCompareMask = 7, kMissingHolds = 8;
constexpr size_t kMaxNodes = size_t{1} << 26;  // of the operator; each becomes at most two blocks

template <typename Real>
std::vector<Real> Reals(const Value& value) {
  if (value.dtype() == MGE_DTYPE_F32) return {value.data<float>().begin(), value.data<float>().end()};
  std::vector<Real> out;
  for (double v : value.data<double>()) out.push_back(static_cast<Real>(v));
  return out;
}

// Places the nodes of the operator level by level, in the form that the kernel walks. Where paths join, all but the first
// lead over a node whose condition always holds.
template <typename Real>
class Builder {
 public:
  using Word = TreeWord<Real>;

  Builder(std::span<const int32_t> nodes, std::vector<Real> splits, Forest<Real>& out)
      : given_(nodes), splits_(std::move(splits)), place_(nodes.size() / 4, kUnplaced), out_(out) {
    std::vector<bool> used;
    for (size_t n = 0; n < place_.size(); ++n) {
      const auto column = static_cast<size_t>(given_[4 * n]);
      if (column >= used.size()) used.resize(column + 1);
      used[column] = true;
    }
    for (size_t column = 0; column < used.size(); ++column) {
      if (used[column]) out_.features.push_back(static_cast<uint32_t>(column));
    }
  }

  void AddTree(int32_t root) {
    const Word place = AddBlock();
    out_.roots.push_back(place);
    open_ = {{root, place}};
    for (size_t i = 0; i < open_.size(); ++i) Expand(open_[i].first, open_[i].second);
  }

 private:
  static constexpr Word kUnplaced = static_cast<Word>(~Word{0});

  Word AddBlock() {
    out_.words.resize(out_.words.size() + 8, 0);
    return static_cast<Word>(out_.words.size() - 8);
  }
  void Set(Word place, Word split, Word feature, Word next, Word value) {
    out_.words[place + kTreeSplit] = split;
    out_.words[place + kTreeFeature] = feature;
    out_.words[place + kTreeNext] = next;
    out_.words[place + kTreeValue] = value;
  }
  // Sets a condition and returns the first of the two places behind it.
  Word SetCondition(Word place, int32_t column, Word split, bool nan) {
    const Word next = AddBlock();
    const auto at = std::ranges::lower_bound(out_.features, static_cast<uint32_t>(column)) - out_.features.begin();
    Set(place, split, static_cast<Word>(at * kTreeLanes * static_cast<int64_t>(sizeof(Real))), next, nan ? 1 : 0);
    out_.nan = out_.nan || nan;
    return next;
  }
  void SetAlways(Word place, Word next, Word value) { Set(place, kNanKey<Real>, 0, next, value); }

  // Fills a node. `from` is its place in the operator's form.
  void Expand(int32_t from, Word place) {
    if (from < 0) {
      const auto number = static_cast<uint32_t>(-1 - static_cast<int64_t>(from));
      return SetAlways(place, place, out_.single ? std::bit_cast<Word>(out_.weights[number]) : number);
    }
    const auto n = static_cast<size_t>(from);
    if (place_[n] != kUnplaced) return SetAlways(place, place_[n], 0);
    place_[n] = place;
    const int32_t* node = given_.data() + 4 * n;
    const int32_t compare = node[1] & kCompareMask;
    const bool missing = (node[1] & kMissingHolds) != 0;
    // Nothing is at most the key 0, and nothing compares with a split that is NaN.
    const Real number = splits_[n];
    const Word split = number == number ? TreeKey(number) : 0, below = split > 0 ? static_cast<Word>(split - 1) : 0;
    if (compare < kEqual) {
      const bool opposite = compare == kGreaterEqual || compare == kGreater;  // NaN fulfils it in the opposite case
      const bool strict = compare == kLess || compare == kGreaterEqual;
      const Word next = SetCondition(place, node[0], strict ? below : split, missing != opposite);
      open_.push_back({node[opposite ? 3 : 2], next});
      open_.push_back({node[opposite ? 2 : 3], next + 1});
      return;
    }
    // "Equal" is "at most split, but not below it". NaN is not equal, and takes the side of the flag.
    const bool equal = compare == kEqual;
    const int32_t same = node[equal ? 2 : 3], other = node[equal ? 3 : 2];
    const Word first = SetCondition(place, node[0], split, equal && missing);
    open_.push_back({other, first + 1});
    const Word second = SetCondition(first, node[0], below, false);
    open_.push_back({other, second});
    open_.push_back({same, second + 1});
  }

  std::span<const int32_t> given_;
  std::vector<Real> splits_;
  std::vector<Word> place_;                     // of each inner node
  std::vector<std::pair<int32_t, Word>> open_;  // nodes of the tree that are not filled, with their places
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
                     out->weights.size() == targets.size() && nodes.size() / 4 + roots.size() < kMaxNodes;
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
  out->words.reserve(2 * nodes.size() + 8 * roots.size());
  Builder<Real> builder(nodes, Reals<Real>(node.input(2)), *out);
  for (int32_t root : roots) builder.AddTree(root);
  return out;
}

template std::shared_ptr<const Forest<float>> MakeForest<float>(const Node& node);
template std::shared_ptr<const Forest<double>> MakeForest<double>(const Node& node);

}  // namespace mge::cpu
