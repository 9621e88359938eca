// SPDX-License-Identifier: Apache-2.0
// Spare nodes of a map or a set, allocated in advance. With them, a pool can record released memory when no host memory is
// left.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace mge {

// A stock of nodes of one container type. Not thread-safe.
template <typename Container>
class SpareNodes {
 public:
  using Node = typename Container::node_type;

  // Allocates nodes until `count` are in stock. Returns false if there is not enough memory.
  bool Stock(size_t count) noexcept {
    try {
      while (nodes_.size() < count) {
        if (nodes_.capacity() == made_) nodes_.reserve(2 * made_ + 8);  // Put() must not allocate
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

  // Takes a node out of stock. There must be one.
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
