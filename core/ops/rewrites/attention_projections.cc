// SPDX-License-Identifier: Apache-2.0
// Computes the queries, keys and values of an attention as one product, whose columns a Split divides. One large product uses
// a device better than three small ones. The Split costs nothing where attention is one kernel, which reads the columns of
// each part; elsewhere it is a copy. So the backend must ask for this rewrite.
#include <algorithm>
#include <array>
#include <vector>

#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_attention_projections {
namespace {

constexpr int kMaxSteps = 16;        // nodes between two products of an attention
constexpr size_t kMaxProducts = 64;  // products of one tensor; if there are more, it is not the input of one attention

// A product with a constant matrix, and the sum with a constant bias if it has one.
struct Projection {
  NodeId product = kNone, last = kNone;  // `last` is the product or the sum
  ValueId weights = kNone, bias = kNone;
  ValueId output(const Graph& graph) const { return graph.node(last).outputs[0]; }
};

// Follows a value through nodes that alone read what comes from it, up to the next node of this operator.
Reader FollowTo(const Graph& graph, ValueId value, std::string_view op) {
  for (int step = 0; step < kMaxSteps; ++step) {
    const Reader reader = OnlyReader(graph, value);
    if (reader.node == kNone || IsOp(graph.node(reader.node), op)) return reader;
    value = graph.node(reader.node).outputs[0];
  }
  return {};
}

bool IsMatrix(const Graph& graph, ValueId value) {
  return IsConstant(graph, value) && graph.value(value).constant.rank() == 2 &&
         kFloating.Contains(graph.value(value).constant.dtype());
}

// Reads a product of `a` with a constant matrix.
bool ReadProjection(const Graph& graph, NodeId id, ValueId a, Projection* out) {
  const Node& node = graph.node(id);
  if (!IsOp(node, "MatMul") || node.inputs[0] != a || !IsMatrix(graph, node.inputs[1])) return false;
  *out = {.product = id, .last = id, .weights = node.inputs[1]};
  const NodeId sum = OnlyReader(graph, node.outputs[0]).node;
  if (sum == kNone || !IsOp(graph.node(sum), "Add")) return true;
  const Node& add = graph.node(sum);
  const ValueId bias = add.inputs[add.inputs[0] == node.outputs[0] ? 1 : 0];
  if (!IsConstant(graph, bias) || graph.value(bias).constant.rank() != 1) return true;
  if (graph.value(bias).constant.shape()[0] != graph.value(out->weights).constant.shape()[1]) return true;
  out->last = sum;
  out->bias = bias;
  return true;
}

// Finds the three projections of one attention. `all` are the products of one tensor.
bool FindAttention(const Graph& graph, const std::vector<Projection>& all, std::array<Projection, 3>* found) {
  std::vector<Reader> products;
  for (const Projection& p : all) products.push_back(FollowTo(graph, p.output(graph), "MatMul"));
  for (size_t q = 0; q < all.size(); ++q) {
    if (products[q].node == kNone || products[q].slot != 0) continue;
    const ValueId scores = graph.node(products[q].node).outputs[0];
    const Reader softmax = FollowTo(graph, scores, "Softmax");
    if (softmax.node == kNone) continue;
    const Reader last = FollowTo(graph, graph.node(softmax.node).outputs[0], "MatMul");
    size_t k = all.size(), v = all.size();
    for (size_t i = 0; i < all.size(); ++i) {
      if (products[i].slot != 1) continue;
      if (products[i].node == products[q].node) k = i;
      if (products[i].node == last.node && last.slot == 0) v = i;
    }
    if (k == all.size() || v == all.size()) continue;
    *found = {all[q], all[k], all[v]};
    return true;
  }
  return false;
}

bool HaveOneForm(const Graph& graph, const std::array<Projection, 3>& parts) {
  const Node& first = graph.node(parts[0].product);
  const Tensor& weights = graph.value(parts[0].weights).constant;
  return std::ranges::all_of(parts, [&](const Projection& p) {
    const Tensor& w = graph.value(p.weights).constant;
    return w.dtype() == weights.dtype() && w.shape()[0] == weights.shape()[0] &&
           (p.bias == kNone) == (parts[0].bias == kNone) && graph.node(p.product).device == first.device;
  });
}

// Returns the matrices side by side. A vector is a matrix of one row.
absl::StatusOr<Tensor> SideBySide(const std::vector<const Tensor*>& parts, HostAllocator& allocator) {
  Shape shape = parts[0]->shape();
  shape.back() = 0;
  for (const Tensor* t : parts) shape.back() += t->shape().back();
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(parts[0]->dtype(), shape, allocator));
  const int64_t rows = shape.size() == 2 ? shape[0] : 1;
  auto* to = static_cast<std::byte*>(out.mutable_data());
  for (int64_t row = 0; row < rows; ++row) {
    for (const Tensor* t : parts) {
      const int64_t bytes = t->shape().back() * ElementBytes(t->dtype());
      to = std::copy_n(static_cast<const std::byte*>(t->data()) + row * bytes, bytes, to);
    }
  }
  return out;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  if (!IsOp(graph.node(id), "MatMul") || !IsMatrix(graph, graph.node(id).inputs[1])) return false;
  const Node first = graph.node(id);  // a copy: adding nodes moves it
  std::vector<Projection> all;
  const bool known = graph.AnyReader(first.inputs[0], [&](NodeId other) {
    const bool listed = std::ranges::any_of(all, [&](const Projection& p) { return p.product == other; });
    if (Projection p; !listed && ReadProjection(graph, other, first.inputs[0], &p)) all.push_back(p);
    return (all.size() == 1 && all[0].product != id) || all.size() > kMaxProducts;
  });
  std::array<Projection, 3> parts;
  if (known || all.size() < 3 || !FindAttention(graph, all, &parts) || !HaveOneForm(graph, parts)) return false;

  std::vector<const Tensor*> weights, biases;
  std::vector<int64_t> columns;
  for (const Projection& p : parts) {
    weights.push_back(&graph.value(p.weights).constant);
    columns.push_back(weights.back()->shape()[1]);
    if (p.bias != kNone) biases.push_back(&graph.value(p.bias).constant);
  }
  MGE_ASSIGN_OR_RETURN(Tensor matrix, SideBySide(weights, allocator));
  Tensor bias;
  if (!biases.empty()) {
    MGE_ASSIGN_OR_RETURN(bias, SideBySide(biases, allocator));
  }

  NodeAdder nodes(graph, first);
  ValueId y = nodes.Add("MatMul", {first.inputs[0], nodes.Constant(std::move(matrix))});
  if (bias.defined()) y = nodes.Add("Add", {y, nodes.Constant(std::move(bias))});
  std::vector<ValueId> outputs;
  for (const Projection& p : parts) outputs.push_back(p.output(graph));
  nodes.AddTo(outputs, "Split", {y, nodes.Integers(columns)}, IntAttribute("axis", -1));
  for (const Projection& p : parts) graph.RemoveNode(p.last);
  return true;
}

}  // namespace

MGE_REWRITE(attention_projections) = {.name = "attention_projections",
                                      .doc = "Computes the queries, keys and values of an attention as one product.",
                                      .on_request = true,
                                      .apply = Apply};

}  // namespace mge::rewrite_attention_projections
