// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/ml.h"
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_feature_extractor {
namespace {

// An index of Gather may be negative, one of ArrayFeatureExtractor may not.
bool InRange(std::span<const int64_t> indices, int64_t columns) {
  return std::ranges::all_of(indices, [&](int64_t i) { return i >= 0 && i < columns; });
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& node = graph.node(id);
  if (node.domain != kMlDomain || node.op != "ArrayFeatureExtractor" || !IsConstant(graph, node.inputs[1])) return false;
  const TensorType& x = graph.value(node.inputs[0]).type;
  if (!x.has_rank || x.dims.size() < 2) return false;
  const Tensor& indices = graph.value(node.inputs[1]).constant;
  if (!InRange(indices.Data<int64_t>(), x.dims.back())) return false;
  const ValueId list = AddFreshConstant(graph, graph.value(node.inputs[1]).name, indices.Reshaped({indices.elements()}));
  Replace(graph, id, "Gather", {node.inputs[0], list}, IntAttribute("axis", static_cast<int64_t>(x.dims.size()) - 1));
  return true;
}

}  // namespace

MGE_REWRITE(feature_extractor) = {.name = "feature_extractor",
                                  .doc = "Replaces an ArrayFeatureExtractor with constant indices by a Gather.",
                                  .apply = Apply};

}  // namespace mge::rewrite_feature_extractor
