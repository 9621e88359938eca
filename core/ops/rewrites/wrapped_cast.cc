// SPDX-License-Identifier: Apache-2.0
#include "core/env/settings.h"
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_wrapped_cast {
namespace {

constexpr TypeSet kNarrowIntegers = {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32};

// A cast to int64 saturates far outside of the narrower types, and casts between integers keep the lowest bits.
absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& node = graph.node(id);
  if (!IsOp(node, "Cast") || !kFloating.Contains(graph.value(node.inputs[0]).type.dtype)) return false;
  const auto to = static_cast<DType>(node.attrs.Int("to"));
  if (!kNarrowIntegers.Contains(to)) return false;
  NodeAdder add(graph, node);
  const ValueId wide = add.Add("Cast", {node.inputs[0]}, CastTo(DType::kI64));
  Replace(graph, id, "Cast", {wide}, CastTo(to));
  return true;
}

}  // namespace

MGE_REWRITE(wrapped_cast) = {
    .name = "wrapped_cast",
    .doc = "With numerics.cast = wrap: casts reals to shorter integers by way of int64, which keeps the lowest bits.",
    .wanted = [](const Snapshot& settings) { return settings.Get<kNumericsCast>() == CastRule::kWrap; },
    .apply = Apply,
    .contains = "Cast"};

}  // namespace mge::rewrite_wrapped_cast
