// SPDX-License-Identifier: Apache-2.0
#include "core/plan/group_order.h"

#include <algorithm>
#include <utility>

namespace mge {

GroupOrder::GroupOrder(std::span<const NodeId> order, NodeId node_count, ForEachNext next)
    : next_(std::move(next)),
      limit_(kVisitsPerNode * static_cast<int64_t>(order.size())),
      group_(static_cast<size_t>(node_count)),
      member_(group_.size()),
      label_(group_.size()),
      after_(group_.size(), kNone),
      before_(group_.size(), kNone),
      inside_(group_.size(), 0),
      reached_(group_.size(), 0) {
  for (NodeId id = 0; id < node_count; ++id) group_[id] = member_[id] = id;
  if (!order.empty()) first_ = order.front();
  for (size_t i = 1; i < order.size(); ++i) {
    after_[order[i - 1]] = order[i];
    before_[order[i]] = order[i - 1];
  }
  Relabel();
}

std::optional<GroupOrder::Join> GroupOrder::Find(std::span<const NodeId> nodes) {
  const int64_t stop_at = std::max(visits_ + kFreeVisits, limit_);
  ++search_;
  gave_up_ = false;
  int64_t last = label_[nodes.front()];
  for (NodeId id : nodes) {
    inside_[id] = search_;
    last = std::max(last, label_[id]);
  }
  Join join = {{nodes.begin(), nodes.end()}, {}};
  bool comes_back = false;
  auto visit = [&](NodeId next, bool from_outside) {
    ++visits_;
    const NodeId group = group_[next];
    if (inside_[group] == search_) {
      comes_back |= from_outside;
    } else if (reached_[group] != search_ && label_[group] < last) {
      reached_[group] = search_;
      join.moved.push_back(group);
    }
  };
  for (NodeId id : nodes) next_(id, [&](NodeId next) { visit(next, false); });
  for (size_t i = 0; i < join.moved.size(); ++i) {
    const NodeId group = join.moved[i];
    NodeId id = group;
    do {
      next_(id, [&](NodeId next) { visit(next, group_[next] != group); });
      id = member_[id];
    } while (id != group && !comes_back);
    gave_up_ = !comes_back && visits_ > stop_at;
    if (comes_back || gave_up_) return std::nullopt;
  }
  std::sort(join.moved.begin(), join.moved.end(), [&](NodeId a, NodeId b) { return label_[a] < label_[b]; });
  return join;
}

void GroupOrder::Apply(const Join& join) {
  NodeId last = join.nodes.front();
  for (NodeId id : join.nodes) {
    if (label_[id] > label_[last]) last = id;
  }
  MoveAfter(last, join.moved);
  for (NodeId id : join.nodes) {
    if (id == last) continue;
    MoveAfter(kNone, {&id, 1});
    group_[id] = last;
    std::swap(member_[id], member_[last]);
  }
}

// Moves groups after `last`, in their order. If `last` is kNone, removes them from the order.
void GroupOrder::MoveAfter(NodeId last, std::span<const NodeId> groups) {
  for (NodeId g : groups) {
    (before_[g] == kNone ? first_ : after_[before_[g]]) = after_[g];
    if (after_[g] != kNone) before_[after_[g]] = before_[g];
  }
  if (last == kNone || groups.empty()) return;
  const NodeId end = after_[last];
  constexpr int64_t kStep = int64_t{1} << 20;
  const int64_t room = end == kNone ? kStep * static_cast<int64_t>(groups.size() + 1) : label_[end] - label_[last];
  const int64_t step = room / static_cast<int64_t>(groups.size() + 1);
  for (NodeId g : groups) {
    label_[g] = label_[last] + step;
    before_[g] = last;
    after_[last] = g;
    last = g;
  }
  after_[last] = end;
  if (end != kNone) before_[end] = last;
  if (step == 0) Relabel();
}

// Gives the groups labels at equal distances.
void GroupOrder::Relabel() {
  constexpr int64_t kDistance = int64_t{1} << 30;
  int64_t label = 0;
  for (NodeId g = first_; g != kNone; g = after_[g]) {
    label_[g] = label += kDistance;
    ++visits_;
  }
}

}  // namespace mge
