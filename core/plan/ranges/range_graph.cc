// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ranges/range_graph.h"

#include <algorithm>
#include <utility>

#include "core/ops/effects.h"
#include "core/plan/passes/pass.h"

namespace mge {
namespace {

// Returns whether a tensor of these sizes can have the layouts that were chosen for the first sizes. A dimension of size 1 may
// stand anywhere in the order of the bytes, so a plan has no reorder for it.
bool HasForm(const Shape& dims, const Shape& first) {
  return std::ranges::equal(dims, first, [](int64_t now, int64_t then) { return then != 1 || now == 1; });
}

}  // namespace

RangeGraph::RangeGraph(std::shared_ptr<const RangePattern> pattern)
    : pattern_(std::move(pattern)), inference_(std::shared_ptr<const Graph>(pattern_, &pattern_->passed.graph)) {}

void RangeGraph::Fold() {
  graph_ = inference_.graph();
  graph_.outputs().resize(graph_.outputs().size() - pattern_->branches.size());
  const std::vector<Tensor>& known = inference_.known();
  const auto is_known = [&](ValueId v) {
    return v == kNone || (known[v].defined() && graph_.value(v).kind == ValueKind::kTensor);
  };
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    Node& node = graph_.node(id);
    if (node.dead || !IsPure(*node.def) || HasBody(node) || !std::ranges::all_of(node.outputs, is_known)) continue;
    node.dead = true;
    for (const ValueId v : node.outputs) {
      if (v == kNone) continue;
      Value& value = graph_.value(v);
      value.role = Role::kConstant;
      value.producer = kNone;
      value.constant = known[v];
    }
  }
  for (ValueId v = 0; v < graph_.value_count(); ++v) first_dims_.push_back(graph_.value(v).type.dims);
}

std::vector<bool> RangeGraph::VaryingValues() const {
  const Graph& pattern = pattern_->passed.graph;
  std::vector<bool> out;
  for (ValueId v = 0; v < pattern.value_count(); ++v) out.push_back(!pattern.value(v).type.IsStatic());
  return out;
}

absl::StatusOr<bool> RangeGraph::SetSizes(std::span<const InputType> inputs, const StopControl* stop) {
  std::vector<Shape> shapes;
  for (const InputType& input : inputs) shapes.push_back(input.shape);
  MGE_RETURN_IF_ERROR(inference_.SetInputs(shapes, [&] { return CheckStop(stop); }));
  if (!folded_) {
    Fold();
    MGE_RETURN_IF_ERROR(RemoveDeadNodes(graph_, {}).status());
    folded_ = true;
  }
  for (const NodeId id : inference_.changed_nodes()) {
    if (!graph_.node(id).dead) graph_.node(id).attrs = inference_.graph().node(id).attrs;
  }
  for (const ValueId v : changed_values()) {
    Value& value = graph_.value(v);
    if (value.dead) continue;
    const Value& now = inference_.graph().value(v);
    value.kind = now.kind;
    value.type = now.type;
    const bool constant = value.role == Role::kConstant;
    if (constant) value.constant = inference_.known()[v];
    if (value.kind == ValueKind::kTensor && value.type.IsStatic() && HasForm(value.type.dims, first_dims_[v]) &&
        (!constant || value.constant.defined())) {
      unfit_.erase(v);
    } else {
      unfit_.insert(v);
    }
  }
  return unfit_.empty() && pattern_->Selects(inference_);
}

}  // namespace mge
