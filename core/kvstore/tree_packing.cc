// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/tree_packing.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "fmt/format.h"

namespace mge {
namespace {

constexpr double kEnough = 0.995;  // part of the highest known rate at which a packing with fewer trees is preferred
constexpr double kMaxTrees = 128;  // bounds the time of the search

struct Link {
  int a, b;
  bool operator==(const Link&) const = default;
};

// Forests that have no link in common.
class Forests {
 public:
  Forests(std::span<const Link> links, size_t devices, size_t forests)
      : links_(links), devices_(devices), forest_of_(links.size(), kFree), in_forest_(forests) {}

  // Adds links until all forests are spanning trees. Returns false if that is impossible.
  bool Fill() {
    size_t missing = in_forest_.size() * (devices_ - 1);
    for (size_t link = 0; link < links_.size() && missing > 0;) {
      if (Add(link++)) {
        --missing;
        continue;
      }
      // Parallel links cannot be added either, now or later.
      while (link < links_.size() && links_[link] == links_[link - 1]) ++link;
    }
    return missing == 0;
  }
  std::vector<Link> Tree(size_t forest) const {
    std::vector<Link> out;
    for (const size_t link : in_forest_[forest]) out.push_back(links_[link]);
    return out;
  }

 private:
  static constexpr size_t kFree = SIZE_MAX;

  // Lets one of the forests have the link, for which others may move to another forest. Returns false if that is impossible.
  bool Add(size_t added) {
    std::vector<std::optional<size_t>> reason(links_.size());  // the link that takes the place of this one
    std::vector<bool> seen(links_.size(), false);
    std::deque<size_t> queue = {added};
    seen[added] = true;
    for (; !queue.empty(); queue.pop_front()) {
      const size_t link = queue.front();
      for (size_t forest = 0; forest < in_forest_.size(); ++forest) {
        if (forest_of_[link] == forest) continue;
        const std::optional<std::vector<size_t>> path = PathWithin(forest, links_[link]);
        if (!path) {
          Move(link, forest, reason);
          return true;
        }
        for (const size_t other : *path) {
          if (seen[other]) continue;
          seen[other] = true;
          reason[other] = link;
          queue.push_back(other);
        }
      }
    }
    return false;
  }
  // Moves the link to the forest, the link that takes its place to the link's forest, and so on.
  void Move(size_t link, size_t forest, const std::vector<std::optional<size_t>>& reason) {
    for (;;) {
      const size_t left = std::exchange(forest_of_[link], forest);
      if (left != kFree) std::erase(in_forest_[left], link);
      in_forest_[forest].push_back(link);
      if (!reason[link]) return;
      forest = left;
      link = *reason[link];
    }
  }
  // Returns the links that connect both ends within a forest, or nullopt if none do.
  std::optional<std::vector<size_t>> PathWithin(size_t forest, const Link& ends) const {
    std::vector<std::optional<size_t>> by(devices_);  // the link over which a device is reached
    std::vector<int> reached = {ends.a};
    for (size_t i = 0; i < reached.size() && reached[i] != ends.b; ++i) {
      for (const size_t link : in_forest_[forest]) {
        if (links_[link].a != reached[i] && links_[link].b != reached[i]) continue;
        const int next = OtherEnd(link, reached[i]);
        if (next == ends.a || by[static_cast<size_t>(next)]) continue;
        by[static_cast<size_t>(next)] = link;
        reached.push_back(next);
      }
    }
    if (!by[static_cast<size_t>(ends.b)]) return std::nullopt;
    std::vector<size_t> path;
    for (int at = ends.b; at != ends.a; at = OtherEnd(path.back(), at)) path.push_back(*by[static_cast<size_t>(at)]);
    return path;
  }
  int OtherEnd(size_t link, int from) const { return links_[link].a == from ? links_[link].b : links_[link].a; }

  const std::span<const Link> links_;
  const size_t devices_;
  std::vector<size_t> forest_of_;               // by link
  std::vector<std::vector<size_t>> in_forest_;  // links by forest
};

// Returns each link as often as `multiple` times its capacity, and not more often than there are trees.
std::vector<Link> ParallelLinks(const LinkMatrix& capacities, size_t multiple, size_t trees) {
  std::vector<Link> out;
  for (size_t a = 0; a < capacities.devices; ++a) {
    for (size_t b = a + 1; b < capacities.devices; ++b) {
      const size_t parallel = static_cast<size_t>(capacities.At(a, b)) * multiple;
      out.insert(out.end(), std::min(parallel, trees), {static_cast<int>(a), static_cast<int>(b)});
    }
  }
  return out;
}

// Divides the devices into groups that links of a capacity above `limit` connect. Returns the group of each device.
std::vector<size_t> GroupsAbove(const LinkMatrix& capacities, float limit) {
  std::vector<size_t> group(capacities.devices);
  std::iota(group.begin(), group.end(), size_t{0});
  for (size_t a = 0; a < capacities.devices; ++a) {
    for (size_t b = 0; b < capacities.devices; ++b) {
      if (capacities.At(a, b) > limit) std::ranges::replace(group, group[b], group[a]);
    }
  }
  return group;
}

// Returns the capacity of the links between groups, divided by the number of groups minus 1; infinity for one group.
double RateBetween(const LinkMatrix& capacities, const std::vector<size_t>& group) {
  const size_t groups = std::set<size_t>(group.begin(), group.end()).size();
  if (groups < 2) return std::numeric_limits<double>::infinity();
  double capacity = 0;
  for (size_t a = 0; a < group.size(); ++a) {
    for (size_t b = a + 1; b < group.size(); ++b) capacity += group[a] != group[b] ? double{capacities.At(a, b)} : 0;
  }
  return capacity / static_cast<double>(groups - 1);
}

// Returns an upper bound of the rate: by the links of each device, and by those between groups that stronger links connect.
double RateBound(const LinkMatrix& capacities) {
  double bound = std::numeric_limits<double>::infinity();
  for (const float limit : std::set<float>(capacities.weights.begin(), capacities.weights.end())) {
    bound = std::min(bound, RateBetween(capacities, GroupsAbove(capacities, limit)));
  }
  for (size_t device = 0; device < capacities.devices; ++device) {
    std::vector<size_t> group(capacities.devices, 0);
    group[device] = 1;
    bound = std::min(bound, RateBetween(capacities, group));
  }
  return bound;
}

// Returns as many spanning trees as `multiple` times the capacities have without a common link, at most `bound`.
std::vector<std::vector<Link>> LargestPacking(const LinkMatrix& capacities, size_t multiple, size_t bound) {
  std::vector<std::vector<Link>> best;
  for (size_t low = 0, high = bound; low < high;) {
    const size_t count = (low + high + 1) / 2;
    const std::vector<Link> links = ParallelLinks(capacities, multiple, count);
    Forests forests(links, capacities.devices, count);
    if (!forests.Fill()) {
      high = count - 1;
      continue;
    }
    low = count;
    best.clear();
    for (size_t i = 0; i < count; ++i) best.push_back(forests.Tree(i));
  }
  return best;
}

// Returns the edges of a tree from this root.
std::vector<TreeEdge> EdgesFrom(int root, const std::vector<Link>& links, size_t devices) {
  std::vector<TreeEdge> out;
  std::vector<int> level(devices, -1), reached = {root};
  level[static_cast<size_t>(root)] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    const int parent = reached[i];
    for (const Link& link : links) {
      if (link.a != parent && link.b != parent) continue;
      const int child = link.a == parent ? link.b : link.a;
      if (level[static_cast<size_t>(child)] >= 0) continue;
      level[static_cast<size_t>(child)] = level[static_cast<size_t>(parent)] + 1;
      out.push_back({level[static_cast<size_t>(child)], parent, child});
      reached.push_back(child);
    }
  }
  return out;
}

// Returns the tree with the root that gives the fewest levels.
PackedTree FromItsCentre(const std::vector<Link>& links, size_t devices) {
  PackedTree best = {EdgesFrom(0, links, devices)};
  for (size_t root = 1; root < devices; ++root) {
    PackedTree tree = {EdgesFrom(static_cast<int>(root), links, devices)};
    if (tree.depth() < best.depth()) best = std::move(tree);
  }
  return best;
}

}  // namespace

LinkMatrix LinkCapacities(const LinkMatrix& classes) {
  const LinkMatrix weights = TreeWeights(classes);
  const bool through_host = std::ranges::any_of(weights.weights, [](float w) { return w > 0 && w <= 1; });
  const float unit = through_host ? static_cast<float>(classes.devices) : 1;
  LinkMatrix out(classes.devices);
  for (size_t i = 0; i < out.weights.size(); ++i) {
    if (weights.weights[i] > 0) out.weights[i] = weights.weights[i] > 1 ? (weights.weights[i] - 1) * unit : 1;
  }
  return out;
}

int64_t TreePacking::shares() const {
  int64_t sum = 0;
  for (const PackedTree& tree : trees) sum += tree.share;
  return sum;
}

TreePacking PackTrees(const LinkMatrix& capacities) {
  const size_t n = capacities.devices;
  if (n < 2) return {.trees = {PackedTree{}}};
  const double bound = RateBound(capacities);
  std::vector<std::vector<std::vector<Link>>> packings;
  std::vector<double> rates;
  for (size_t multiple = 1; multiple < n; ++multiple) {
    const double best = static_cast<double>(multiple) * bound;
    if (multiple > 1 && best > kMaxTrees) break;
    packings.push_back(LargestPacking(capacities, multiple, static_cast<size_t>(best + 1e-9)));
    rates.push_back(static_cast<double>(packings.back().size()) / static_cast<double>(multiple));
    if (rates.back() >= kEnough * bound) break;
  }
  const double enough = kEnough * *std::ranges::max_element(rates);
  const auto chosen =
      static_cast<size_t>(std::ranges::find_if(rates, [&](double r) { return r >= enough; }) - rates.begin());
  TreePacking out;
  out.rate = rates[chosen];
  for (const std::vector<Link>& links : packings[chosen]) {
    PackedTree tree = FromItsCentre(links, n);
    const auto same = std::ranges::find(out.trees, tree.edges, &PackedTree::edges);
    if (same != out.trees.end()) {
      ++same->share;
    } else {
      out.trees.push_back(std::move(tree));
    }
  }
  std::ranges::stable_sort(out.trees, {}, &PackedTree::depth);
  return out;
}

LinkMatrix LinkLoads(const TreePacking& packing, size_t devices) {
  LinkMatrix loads(devices);
  for (const PackedTree& tree : packing.trees) {
    for (const TreeEdge& edge : tree.edges) {
      loads.At(static_cast<size_t>(edge.parent), static_cast<size_t>(edge.child)) += static_cast<float>(tree.share);
      loads.At(static_cast<size_t>(edge.child), static_cast<size_t>(edge.parent)) += static_cast<float>(tree.share);
    }
  }
  return loads;
}

std::string TreeText(const PackedTree& tree) {
  std::string text;
  int level = 1;
  for (const TreeEdge& edge : tree.edges) {
    text += fmt::format("{}{}-{}", edge.level != level ? " | " : text.empty() ? "" : " ", edge.parent, edge.child);
    level = edge.level;
  }
  return text;
}

}  // namespace mge
