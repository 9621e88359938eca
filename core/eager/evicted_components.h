// SPDX-License-Identifier: Apache-2.0
// Connected components of evicted values: a union-find structure with the sum of the members' costs.
#pragma once

#include <memory>
#include <utility>

namespace mge {

// A member of a component. A component is a tree of members; its root has the sum of the costs.
struct EvictedComponent {
  explicit EvictedComponent(double member_cost) : cost(member_cost) {}
  std::shared_ptr<EvictedComponent> parent;  // nullptr: a root
  double cost;                               // of all members; only the root's is used
};

// Returns the root of a member's component. Shortens the path to it.
inline std::shared_ptr<EvictedComponent> RootOf(std::shared_ptr<EvictedComponent> member) {
  while (member->parent) {
    if (member->parent->parent) member->parent = member->parent->parent;
    member = member->parent;
  }
  return member;
}

// Joins two components into one with the sum of their costs. Does nothing if they are one already.
inline void Join(const std::shared_ptr<EvictedComponent>& a, const std::shared_ptr<EvictedComponent>& b) {
  const std::shared_ptr<EvictedComponent> x = RootOf(a), y = RootOf(b);
  if (x == y) return;
  x->cost += y->cost;
  y->parent = x;
}

}  // namespace mge
