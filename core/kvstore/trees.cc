// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/trees.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

constexpr float kReusedLink = 100, kRepeatedDevice = 10;  // penalties within one tree
constexpr int kSearchedDepth = 3;  // up to here, all trees are compared; deeper, the first one is taken
constexpr int kTries = 10;         // of the bisection, per tree

int DepthOf(size_t devices) {
  int depth = 0;
  while ((size_t{1} << depth) < devices) ++depth;
  return depth;
}

// The leaves of a tree in order. The entry of level `depth - i` at position k is leaf k * 2^i.
using Leaves = std::vector<int>;

ReductionTree TreeOf(const Leaves& leaves, int depth) {
  ReductionTree tree;
  for (int i = depth; i >= 0; --i) {
    tree.starts.push_back(static_cast<int>(tree.topology.size()));
    for (size_t k = 0; k < leaves.size(); k += size_t{1} << i) tree.topology.push_back(leaves[k]);
  }
  tree.starts.push_back(static_cast<int>(tree.topology.size()));
  return tree;
}

float WeightOf(const LinkMatrix& w, const Leaves& leaves, int depth) {
  float weight = 0;
  std::set<std::pair<int, int>> used;
  for (int i = 0; i < depth; ++i) {
    const size_t stride = size_t{1} << i;
    std::vector<bool> seen(w.devices, false);
    for (size_t k = 0; k + stride < leaves.size(); k += 2 * stride) {
      const int parent = leaves[k], child = leaves[k + stride];
      if (parent != child) {
        weight += w.At(static_cast<size_t>(parent), static_cast<size_t>(child));
        if (!used.insert(std::minmax(parent, child)).second) weight -= kReusedLink;
      }
      seen[static_cast<size_t>(parent)] = true;
      if (i > 0 && seen[static_cast<size_t>(child)]) weight -= kRepeatedDevice;
      seen[static_cast<size_t>(child)] = true;
    }
  }
  return weight;
}

// Lets devices that would send twice send to themselves instead.
void RemoveRedundantCopies(Leaves& leaves, size_t devices, int depth) {
  for (int level = depth - 1; level >= 0; --level) {
    const size_t stride = size_t{1} << level;
    std::vector<int> above(devices, 0), here(devices, 0);
    for (size_t i = 0; i < leaves.size(); i += 2 * stride) ++above[static_cast<size_t>(leaves[i])];
    for (size_t i = 0; i < leaves.size(); i += stride) ++here[static_cast<size_t>(leaves[i])];
    for (size_t i = leaves.size() - stride; i >= stride; i -= 2 * stride) {
      const auto from = static_cast<size_t>(leaves[i]);
      const int to = leaves[i - stride];
      if (static_cast<int>(from) != to && (here[from] > 1 || above[from] > 0)) {
        leaves[i] = to;
        --here[from];
      }
      if (i < 2 * stride) break;
    }
  }
}

// Searches the assignments of devices to leaves in lexicographic order.
class Search {
 public:
  Search(const LinkMatrix& w, int root) : w_(w), depth_(DepthOf(w.devices)), leaves_(size_t{1} << depth_, -1) {
    leaves_[0] = root;
    Place(1);
  }
  const std::optional<Leaves>& best() const { return best_; }
  float best_weight() const { return best_weight_; }

 private:
  // Places the leaves from `row` on. Returns whether the search is over.
  bool Place(size_t row) {
    if (row == leaves_.size()) {
      Leaves found = leaves_;
      RemoveRedundantCopies(found, w_.devices, depth_);
      const float weight = WeightOf(w_, found, depth_);
      if (weight > best_weight_) {
        best_weight_ = weight;
        best_ = std::move(found);
      }
      return depth_ > kSearchedDepth;
    }
    for (size_t device = 0; device < w_.devices; ++device) {
      leaves_[row] = static_cast<int>(device);
      const bool over = IsValid(row + 1) && Place(row + 1);
      leaves_[row] = -1;
      if (over) return true;
    }
    return false;
  }
  // Returns whether the first `row` leaves can be those of a tree.
  bool IsValid(size_t row) const {
    for (int i = 0; i < depth_; ++i) {
      const size_t stride = size_t{1} << i;
      for (size_t k = 0; k + stride < row; k += 2 * stride) {
        const auto parent = static_cast<size_t>(leaves_[k]), child = static_cast<size_t>(leaves_[k + stride]);
        if (parent != child && w_.At(parent, child) == 0) return false;
      }
    }
    const size_t distinct = std::set<int>(leaves_.begin(), leaves_.begin() + static_cast<int64_t>(row)).size();
    if (row == leaves_.size()) return distinct == w_.devices;
    const size_t repeats = leaves_.size() - w_.devices;
    return row >= w_.devices || distinct + repeats >= row;
  }

  const LinkMatrix& w_;
  const int depth_;
  Leaves leaves_;
  std::optional<Leaves> best_;
  float best_weight_ = std::numeric_limits<float>::lowest();
};

// Bisects the devices, level by level.
class Bisection {
 public:
  explicit Bisection(const LinkMatrix& w) : w_(w), depth_(DepthOf(w.devices)) {}

  // Returns the leaves of a tree, or nullopt if none of the tries found one.
  std::optional<Leaves> TreeFrom(int root) {
    for (int tries = 0; tries < kTries; ++tries) {
      if (auto leaves = Try(root)) return leaves;
    }
    return std::nullopt;
  }

 private:
  using Cluster = std::vector<int>;
  struct Entry {
    int device;
    Cluster cluster;  // the devices below the entry, itself included; empty if it repeats the entry before
  };

  std::optional<Leaves> Try(int root) {
    Cluster all(w_.devices);
    std::iota(all.begin(), all.end(), 0);
    std::vector<Entry> level = {{root, all}};
    for (int i = 0; i < depth_; ++i) {
      std::vector<Entry> next;
      for (const Entry& entry : level) {
        if (!Divide(entry, next)) return std::nullopt;
      }
      level = std::move(next);
    }
    Leaves leaves;
    for (const Entry& entry : level) leaves.push_back(entry.device);
    return leaves;
  }

  // Adds the two entries below `entry`. Returns false if its device has no link to the other half.
  bool Divide(const Entry& entry, std::vector<Entry>& next) {
    if (entry.cluster.size() < 2) {
      next.push_back(entry);
      next.push_back({entry.device, {}});
      return true;
    }
    Cluster halves[2];
    Bisect(entry.cluster, halves);
    const bool second = std::ranges::count(halves[1], entry.device) > 0;
    Cluster &mine = halves[second], &others = halves[!second];
    Shuffle(others);
    auto link = [&](int device) { return w_.At(static_cast<size_t>(entry.device), static_cast<size_t>(device)); };
    const int child = *std::ranges::max_element(others, {}, link);
    if (link(child) == 0) return false;
    next.push_back({entry.device, std::move(mine)});
    next.push_back({child, std::move(others)});
    return true;
  }

  // Divides devices into halves with weak links between them: the algorithm of Kernighan and Lin, from a random division.
  void Bisect(Cluster devices, Cluster halves[2]) {
    if (devices.size() > 2) Shuffle(devices);
    const size_t n = devices.size();
    std::vector<int> side(n, -1);
    std::fill(side.begin(), side.begin() + static_cast<int64_t>(n / 2), 1);
    for (size_t pass = 0; n > 2 && pass <= n; ++pass) {
      if (!Improve(devices, side)) break;
    }
    for (size_t i = 0; i < n; ++i) halves[side[i] > 0 ? 0 : 1].push_back(devices[i]);
  }
  // Swaps the pairs that together shorten the cut the most. Returns false if none does.
  bool Improve(const Cluster& devices, std::vector<int>& side) const {
    const size_t n = devices.size();
    std::vector<int> now = side;
    std::vector<bool> used(n, false);
    std::vector<std::pair<size_t, size_t>> swaps;
    float gain = 0, best = 0;
    size_t best_swaps = 0;
    auto link = [&](size_t a, size_t b) { return w_.At(static_cast<size_t>(devices[a]), static_cast<size_t>(devices[b])); };
    // The weight of the links to the other half, minus that of the links within its own.
    auto outward = [&](size_t a) {
      float d = 0;
      for (size_t b = 0; b < n; ++b) d -= static_cast<float>(now[a] * now[b]) * link(a, b);
      return d;
    };
    for (size_t k = 0; k < n / 2; ++k) {
      float most = -std::numeric_limits<float>::infinity();
      std::pair<size_t, size_t> pair;
      for (size_t a = 0; a < n; ++a) {
        for (size_t b = a + 1; b < n; ++b) {
          if (used[a] || used[b] || now[a] == now[b]) continue;
          const float g = outward(a) + outward(b) - 2 * link(a, b);
          if (g > most) most = g, pair = {a, b};
        }
      }
      if (most <= 0) break;
      std::swap(now[pair.first], now[pair.second]);
      used[pair.first] = used[pair.second] = true;
      swaps.push_back(pair);
      if ((gain += most) > best) best = gain, best_swaps = swaps.size();
    }
    for (size_t k = 0; k < best_swaps; ++k) std::swap(side[swaps[k].first], side[swaps[k].second]);
    return best > 0;
  }
  // Shuffles like the same seed on every machine, which std::shuffle does not promise.
  void Shuffle(Cluster& devices) {
    for (size_t i = devices.size(); i > 1; --i) std::swap(devices[i - 1], devices[random_() % i]);
  }

  const LinkMatrix& w_;
  const int depth_;
  std::mt19937 random_{1};
};

// Lets later trees prefer other links than those of the tree.
void Penalise(LinkMatrix& w, const ReductionTree& tree, float penalty) {
  for (size_t i = 1; i + 1 < tree.topology.size(); i += 2) {
    const auto parent = static_cast<size_t>(tree.topology[i]), child = static_cast<size_t>(tree.topology[i + 1]);
    if (parent == child) continue;
    w.At(parent, child) *= penalty;
    w.At(child, parent) *= penalty;
  }
}

}  // namespace

LinkMatrix TreeWeights(LinkMatrix classes) {
  const size_t n = classes.devices;
  std::vector<size_t> reached = {0};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (size_t to = 0; to < n; ++to) {
      if (classes.At(reached[i], to) > 1 && !std::ranges::count(reached, to)) reached.push_back(to);
    }
  }
  const float through_host = reached.size() == n ? 0 : 1 / static_cast<float>(n);
  for (float& w : classes.weights) w = w == 1 ? through_host : w;
  return classes;
}

absl::StatusOr<ReductionTrees> BuildTrees(LinkMatrix weights, const TreeOptions& options) {
  ReductionTrees out;
  const int depth = DepthOf(weights.devices);
  for (int root = 0; root < static_cast<int>(weights.devices); ++root) {
    std::optional<Leaves> leaves;
    if (!options.backtrack) leaves = Bisection(weights).TreeFrom(root);
    if (!leaves) {
      if (!options.backtrack) out.searched.push_back(root);
      leaves = Search(weights, root).best();
    }
    if (!leaves) {
      return Fail(
          errors::kDeviceUnusable, fmt::format("no tree of links leads from all devices to device {}", root),
          {.what = fmt::format("the weights of the links are {}", MatrixText(weights)),
           .fix = "leave kvstore.tree_backtrack and kvstore.tree_link_usage_penalty unset, for trees of another form"});
    }
    out.trees.push_back(TreeOf(*leaves, depth));
    out.trees.back().weight = WeightOf(weights, *leaves, depth);
    Penalise(weights, out.trees.back(), options.penalty);
  }
  return out;
}

std::vector<TreeEdge> EdgesOf(const ReductionTree& tree) {
  std::vector<TreeEdge> edges;
  std::set<int> reached = {tree.topology[0]};
  for (int i = 1; i <= tree.depth(); ++i) {
    const std::span<const int> level = tree.level(i);
    for (size_t k = 0; k + 1 < level.size(); k += 2) {
      if (reached.insert(level[k + 1]).second) edges.push_back({i, level[k], level[k + 1]});
    }
  }
  return edges;
}

LinkMatrix LinkUses(std::span<const ReductionTree> trees, size_t devices) {
  LinkMatrix uses(devices);
  for (const ReductionTree& tree : trees) {
    for (const TreeEdge& edge : EdgesOf(tree)) {
      ++uses.At(static_cast<size_t>(edge.parent), static_cast<size_t>(edge.child));
      ++uses.At(static_cast<size_t>(edge.child), static_cast<size_t>(edge.parent));
    }
  }
  return uses;
}

std::string TreeText(const ReductionTree& tree) {
  std::string text;
  for (int i = 0; i <= tree.depth(); ++i) text += fmt::format("{}{}", i ? " | " : "", fmt::join(tree.level(i), " "));
  return text;
}

std::string MatrixText(const LinkMatrix& matrix) {
  std::string text;
  for (size_t i = 0; i < matrix.devices; ++i) {
    const auto row = matrix.weights.begin() + static_cast<int64_t>(i * matrix.devices);
    text += fmt::format("{}{:.4g}", i ? " | " : "", fmt::join(row, row + static_cast<int64_t>(matrix.devices), " "));
  }
  return text;
}

}  // namespace mge
