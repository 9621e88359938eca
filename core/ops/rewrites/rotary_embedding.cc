// SPDX-License-Identifier: Apache-2.0
// Replaces a RotaryEmbedding by simple operators: the pairs of elements become two tensors, which are multiplied by the
// cosines and sines of the tokens' positions.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/families/rotary.h"
#include "core/ops/rewrites/node_adder.h"
#include "core/ops/rewrites/pattern.h"

namespace mge::rewrite_rotary_embedding {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (!IsOp(node, "RotaryEmbedding")) return false;
  const auto type = [&](int i) -> const TensorType& { return graph.value(node.inputs[i]).type; };
  for (int i = 0; i < 3; ++i) {
    if (!type(i).has_rank || type(i).dims.back() == kUnknownDim) return false;
  }
  Shape dims = type(0).dims;
  MGE_ASSIGN_OR_RETURN(const RotaryShape s, RotaryShapeOf(node.attrs, dims));
  if (s.rotated == 0) return false;
  std::ranges::replace(dims, kUnknownDim, 0);  // Reshape keeps these sizes, which stay at their places
  const int64_t half = s.rotated / 2, rest = s.head_size - s.rotated;
  const bool interleaved = node.attrs.Int("interleaved") != 0;
  const bool has_positions = node.inputs.size() > 3 && node.inputs[3] != kNone;
  NodeAdder nodes(graph, node);

  // Returns a cache with the dimensions of the heads, where it has the dimension 1 for the axis of heads.
  auto cache = [&](ValueId rows) {
    const int64_t row = graph.value(rows).type.dims.back();
    if (row > half) rows = nodes.Split(rows, {half, row - half})[0];
    if (has_positions) rows = nodes.Add("Gather", {rows, node.inputs[3]});
    const int64_t heads = dims.size() == 4 ? 1 : 2;
    return nodes.Add("Unsqueeze", {rows, nodes.Integers(interleaved ? std::vector<int64_t>{heads, 4} : std::vector{heads})});
  };
  const ValueId cos = cache(node.inputs[1]), sin = cache(node.inputs[2]);

  Shape heads = dims;  // the shape of X with a dimension of heads
  ValueId x = node.inputs[0];
  auto reshape = [&](ValueId value, const Shape& shape) {
    return nodes.Add("Reshape", {value, nodes.Integers({shape.begin(), shape.end()})});
  };
  if (dims.size() == 3) {
    heads = {dims[0], dims[1], s.heads, s.head_size};
    x = reshape(x, heads);
  }
  std::vector<ValueId> split;  // the two elements of each pair, and the elements that stay
  if (interleaved) {
    split = nodes.Split(x, rest ? std::vector<int64_t>{s.rotated, rest} : std::vector<int64_t>{s.rotated});
    Shape pairs = heads;
    pairs.back() = half;
    pairs.push_back(2);
    const std::vector<ValueId> two = nodes.Split(reshape(split[0], pairs), {1, 1});
    split[0] = two[1];
    split.insert(split.begin(), two[0]);
  } else {
    split = nodes.Split(x, rest ? std::vector<int64_t>{half, half, rest} : std::vector<int64_t>{half, half});
  }
  const ValueId a = split[0], b = split[1];
  const ValueId real = nodes.Add("Sub", {nodes.Add("Mul", {cos, a}), nodes.Add("Mul", {sin, b})});
  const ValueId imaginary = nodes.Add("Add", {nodes.Add("Mul", {sin, a}), nodes.Add("Mul", {cos, b})});
  std::vector<ValueId> joined = {real, imaginary};
  if (interleaved) {
    heads.back() = s.rotated;
    joined = {reshape(nodes.Add("Concat", joined, IntAttribute("axis", -1)), heads)};
  }
  if (rest) joined.push_back(split[2]);
  const ValueId y = joined.size() == 1 ? joined[0] : nodes.Add("Concat", joined, IntAttribute("axis", -1));
  Replace(graph, id, "Reshape", {y, nodes.Integers({dims.begin(), dims.end()})});
  return true;
}

}  // namespace

MGE_REWRITE(rotary_embedding) = {
    .name = "rotary_embedding", .doc = "Replaces a RotaryEmbedding by products with the cosines and sines.", .apply = Apply};

}  // namespace mge::rewrite_rotary_embedding
