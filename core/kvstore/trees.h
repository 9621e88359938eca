// SPDX-License-Identifier: Apache-2.0
// Balanced reduction trees: along which links the devices of a group add up an array. Tree r has device r as root. A later tree
// prefers links that no earlier one uses, so that all trees together load the links evenly. Source: MXNet's gpu_topology.h.
// Some links allow no such trees, and others only slow ones; tree_packing.h has better ones.
//
// A tree of depth d has 2^d leaves. Level 0 is the root; each entry of a level has two entries on the next one: itself, and a
// device that sends to it. If an entry occurs twice there, nothing is sent. The depth is the smallest with 2^d >= devices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace mge {

// A square matrix of link weights, row by row. 0: no link, and on the diagonal.
struct LinkMatrix {
  size_t devices = 0;
  std::vector<float> weights;

  explicit LinkMatrix(size_t n) : devices(n), weights(n * n, 0) {}
  float& At(size_t from, size_t to) { return weights[from * devices + to]; }
  float At(size_t from, size_t to) const { return weights[from * devices + to]; }
};

// Returns the weights that trees use, for a matrix of link classes: 1 is a link through the host, higher ones are direct links.
// If direct links connect all devices, there are no others. Otherwise, links through the host count 1 / devices.
LinkMatrix TreeWeights(LinkMatrix classes);

struct ReductionTree {
  std::vector<int> topology;  // the levels, from the root to the leaves
  std::vector<int> starts;    // of each level in `topology`, then its size
  float weight = 0;           // sum of the links' weights when the tree was built

  int depth() const { return static_cast<int>(starts.size()) - 2; }
  std::span<const int> level(int i) const {
    return {topology.data() + starts[static_cast<size_t>(i)], topology.data() + starts[static_cast<size_t>(i) + 1]};
  }
};

struct TreeOptions {
  bool backtrack = false;  // search all trees; false: bisect the devices with the Kernighan-Lin algorithm
  float penalty = 0.7f;    // factor of a link's weight for each tree that uses it
};

struct ReductionTrees {
  std::vector<ReductionTree> trees;  // by root
  std::vector<int> searched;         // roots for which the bisection found no tree, so that all trees were searched
};

// Builds a tree for each root. Fails with kDeviceUnusable, which names the root, if the links allow no tree.
absl::StatusOr<ReductionTrees> BuildTrees(LinkMatrix weights, const TreeOptions& options);

// A copy to the root or from it, between a device and the one nearer to the root.
struct TreeEdge {
  int level;  // 1 is next to the root
  int parent, child;
  bool operator==(const TreeEdge&) const = default;
};
// Returns the copies of a tree: one for each device but the root, from the root to the leaves.
std::vector<TreeEdge> EdgesOf(const ReductionTree& tree);

// Returns a matrix with the number of trees' copies over each link, in both directions together.
LinkMatrix LinkUses(std::span<const ReductionTree> trees, size_t devices);

// Return texts for the log: a line per level, and a line per row.
std::string TreeText(const ReductionTree& tree);
std::string MatrixText(const LinkMatrix& matrix);

}  // namespace mge
