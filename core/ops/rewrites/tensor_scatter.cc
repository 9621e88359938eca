// SPDX-License-Identifier: Apache-2.0
// Replaces a TensorScatter by operators that backends have, so that a cache stays in the device's memory. Without indices the
// update is the start of the result; else a ScatterND writes each token to its coordinates.
#include <vector>

#include "core/ops/op_helpers.h"
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_tensor_scatter {
namespace {

constexpr int64_t kMaxCoordinates = int64_t{1} << 20;  // they are a constant of the plan

// Returns the coordinates of all positions in the dimensions before the last: [dims..., dims.size() - 1].
absl::StatusOr<Tensor> LeadingCoordinates(const Shape& dims, HostAllocator& allocator) {
  Shape shape = dims;
  shape.push_back(static_cast<int64_t>(dims.size()) - 1);
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kI64, shape, allocator));
  Shape index(dims.size(), 0);
  int64_t* to = out.MutableData<int64_t>().data();
  do {
    to = std::copy(index.begin(), index.end() - 1, to);
  } while (NextIndex(dims, std::span<int64_t>(index.data(), index.size())));
  return out;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (!IsOp(node, "TensorScatter")) return false;
  const ValueId cache = node.inputs[0], update = node.inputs[1];
  const TensorType cache_type = graph.value(cache).type, update_type = graph.value(update).type;
  if (!cache_type.IsStatic() || !update_type.IsStatic() || !kFixedSize.Contains(cache_type.dtype)) return false;
  if (Elements(update_type.dims) == 0) return false;
  const auto rank = static_cast<int64_t>(cache_type.dims.size());
  MGE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(node.attrs.Int("axis"), rank));
  const int64_t size = cache_type.dims[axis], tokens = update_type.dims[axis];
  NodeAdder nodes(graph, node);

  if (node.inputs.size() < 3 || node.inputs[2] == kNone) {
    if (tokens == size) {
      Replace(graph, id, "Identity", {update});
      return true;
    }
    const ValueId rest =
        nodes.Add("Slice", {cache, nodes.Integers({tokens}), nodes.Integers({size}), nodes.Integers({axis})});
    const NodeId concat = Replace(graph, id, "Concat", {update, rest});
    graph.node(concat).attrs.Set("axis", axis);
    return true;
  }

  Shape dims(update_type.dims.begin(), update_type.dims.begin() + axis + 1);
  if (Elements(dims) * axis > kMaxCoordinates) return false;
  MGE_ASSIGN_OR_RETURN(Tensor leading, LeadingCoordinates(dims, allocator));
  std::vector<int64_t> per_batch(axis + 2, 1), steps(tokens);
  per_batch[0] = dims[0];
  for (int64_t t = 0; t < tokens; ++t) steps[t] = t;
  const bool circular = node.attrs.Text("mode") == "circular";
  auto wrapped = [&](ValueId v) { return circular ? nodes.Add("Mod", {v, nodes.Integers({size})}) : v; };
  ValueId starts = wrapped(nodes.Add("Reshape", {node.inputs[2], nodes.Integers(per_batch)}));
  if (!circular) {  // a negative index is an error, which ScatterND reports for a place behind the end
    const ValueId negative = nodes.Add("Less", {starts, nodes.Integers({0})});
    starts = nodes.Add("Where", {negative, nodes.Integers({size}), starts});
  }
  const ValueId column = nodes.Constant(Tensor::Of<int64_t>({tokens, 1}, std::span<const int64_t>(steps)));
  std::vector<int64_t> whole(dims.begin(), dims.end());
  whole.push_back(1);
  const ValueId places = nodes.Add("Expand", {wrapped(nodes.Add("Add", {starts, column})), nodes.Integers(whole)});
  const ValueId coordinates = nodes.Add("Concat", {nodes.Constant(std::move(leading)), places}, IntAttribute("axis", -1));
  Replace(graph, id, "ScatterND", {cache, coordinates, update});
  return true;
}

}  // namespace

MGE_REWRITE(tensor_scatter) = {.name = "tensor_scatter",
                               .doc = "Replaces a TensorScatter by a Concat or a ScatterND, which backends have.",
                               .apply = Apply};

}  // namespace mge::rewrite_tensor_scatter
