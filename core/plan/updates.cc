// SPDX-License-Identifier: Apache-2.0
#include "core/plan/updates.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/effects.h"
#include "core/plan/cover.h"
#include "core/plan/memory/buffers.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status NotAllowed(const Graph& graph, NodeId update, std::string why, std::string fix) {
  const Node& node = graph.node(update);
  return Fail(errors::kInvalidGraph,
              fmt::format("operator {} cannot write to the memory of '{}'", node.op, graph.value(node.inputs[0]).name),
              {.what = std::move(why), .where = NodePlace(node), .fix = std::move(fix)});
}

absl::Status CheckTarget(const Graph& graph, const PlanContext& context, NodeId update) {
  const ValueId v = graph.node(update).inputs[0];
  const Value& target = graph.value(v);
  auto refuse = [&](std::string why, std::string fix = "update a copy of it, made by an operator") {
    return NotAllowed(graph, update, std::move(why), std::move(fix));
  };
  if (target.role == Role::kInput || target.role == Role::kCapture) return refuse("it is an input, the caller's memory");
  if (target.role == Role::kConstant) return refuse("it is a constant", "make it an initializer of the main graph");
  if (graph.OutputUses(v) > 0) return refuse("it is an output of the graph, which keeps its elements");
  if (!HasSlot(target)) return refuse("its shape or type has no fixed size", "fix the shapes of the model's inputs");
  if (target.role == Role::kState && !context.states) return refuse("states belong to the model's main graph");
  if (target.producer != kNone && graph.node(target.producer).def->KeepsBytes()) {
    return refuse("it shares the memory of another value", "update the value before the change of shape");
  }
  return absl::OkStatus();
}

// Returns the nodes that read the bytes of `v`, also under another shape.
std::vector<NodeId> ReadersOf(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers, ValueId v) {
  std::vector<NodeId> out;
  std::unordered_set<NodeId> known;
  std::vector<ValueId> open = {v};
  for (size_t i = 0; i < open.size(); ++i) {
    for (NodeId reader : consumers[open[i]]) {
      if (!known.insert(reader).second) continue;
      out.push_back(reader);
      const Node& node = graph.node(reader);
      if (node.def->KeepsBytes() && node.outputs[0] != kNone) open.push_back(node.outputs[0]);
    }
  }
  return out;
}

// Returns true if a path of edges and orders leads from `from` to `to`.
bool Reaches(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers, const Updates& updates, NodeId from,
             NodeId to) {
  std::vector<bool> seen(static_cast<size_t>(graph.node_count()), false);
  std::vector<NodeId> work = {from};
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (id == to) return true;
    if (seen[id]) continue;
    seen[id] = true;
    for (ValueId v : graph.node(id).outputs) {
      if (v != kNone) work.insert(work.end(), consumers[v].begin(), consumers[v].end());
    }
    if (auto after = updates.after.find(id); after != updates.after.end()) {
      work.insert(work.end(), after->second.begin(), after->second.end());
    }
  }
  return false;
}

bool IsPlainOrAny(const mge_layout& layout) { return IsPlain(layout) || layout.kind == MGE_LAYOUT_ANY; }

}  // namespace

absl::StatusOr<Updates> FindUpdates(const Graph& graph, const PlanContext& context, const std::vector<bool>& deferred) {
  Updates out;
  std::vector<std::vector<NodeId>> consumers;
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (!IsUpdate(*node.def)) continue;
    if (deferred[id])
      return NotAllowed(graph, id, "shapes that it depends on are known only during the run",
                        "fix the shapes of the model's inputs");
    if (consumers.empty()) consumers = graph.Consumers();
    MGE_RETURN_IF_ERROR(CheckTarget(graph, context, id));
    for (NodeId reader : ReadersOf(graph, consumers, node.inputs[0])) {
      if (reader == id) continue;
      if (Reaches(graph, consumers, out, id, reader)) {
        return NotAllowed(graph, id, fmt::format("{} reads it after the update", NodePlace(graph.node(reader))),
                          "let that node read the output of the update");
      }
      out.after[reader].push_back(id);
    }
    out.list.push_back({id});
  }
  return out;
}

void KeepUpdates(Group& group) {
  std::vector<OwnedCandidate> kept;
  for (OwnedCandidate& c : group.candidates.offered) {
    auto lacks = [&](const mge_in_place& alias) {
      return std::none_of(c.in_place.begin(), c.in_place.end(), [&](const mge_in_place& pair) {
        return pair.output == alias.output && pair.input == alias.input;
      });
    };
    if (std::any_of(group.aliases.begin(), group.aliases.end(), lacks)) {
      group.candidates.refused.push_back({c.id, "it does not offer the in-place pair that the problem requires"});
      continue;
    }
    const bool plain = std::all_of(c.outputs.begin(), c.outputs.end(), IsPlainOrAny);
    if (!plain) {
      group.candidates.refused.push_back({c.id, "it writes another layout than the target's"});
      continue;
    }
    // All operands of layout ANY have one layout, which must be the target's.
    for (mge_layout& l : c.inputs) l = l.kind == MGE_LAYOUT_ANY ? PlainLayout() : l;
    for (mge_layout& l : c.outputs) l = PlainLayout();
    if (static_cast<size_t>(group.target) == c.inputs.size()) c.inputs.push_back(PlainLayout());
    kept.push_back(std::move(c));
  }
  group.candidates.offered = std::move(kept);
}

}  // namespace mge
