// SPDX-License-Identifier: Apache-2.0
// Nodes of a map or a set kept for later, so that what is given back can be noted when there is no memory.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace mge {

template <typename Container>
class SpareNodes {
 public:
  using Node = typename Container::node_type;

  // Whether `count` spare nodes are there, which takes memory if there are fewer.
  bool Stock(size_t count) noexcept {
    try {
      while (nodes_.size() < count) {
        if (nodes_.capacity() == made_) nodes_.reserve(2 * made_ + 8);  // room for every node there is
        Container one;
        one.emplace();
        nodes_.push_back(one.extract(one.begin()));
        ++made_;
      }
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // A node that Stock() made.
  Node Take() noexcept {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    return node;
  }
  void Put(Node node) noexcept { nodes_.push_back(std::move(node)); }

 private:
  std::vector<Node> nodes_;
  size_t made_ = 0;
};

}  // namespace mge
