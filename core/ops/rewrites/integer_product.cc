// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/node_adder.h"
#include "core/ops/rewrites/quantized.h"

namespace mge::rewrite_integer_product {
namespace {

// Returns a constant matrix of bytes, transposed.
absl::StatusOr<Tensor> Transposed(const Tensor& matrix, HostAllocator& allocator) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(matrix.dtype(), {columns, rows}, allocator));
  const auto* from = static_cast<const std::byte*>(matrix.data());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }
  return out;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (!IsOp(node, "MatMul") && !IsOp(node, "Gemm")) return false;
  const bool gemm = node.op == "Gemm", transposed = gemm && node.attrs.Int("transB") != 0;
  const std::optional<ProductOperands> found = FindProductOperands(graph, node, transposed);
  if (!found) return false;
  const auto& [a, b] = *found;
  const bool has_addend = gemm && node.inputs.size() > 2 && node.inputs[2] != kNone;
  if (gemm && (node.attrs.Int("transA") != 0 || (has_addend && node.attrs.Float("beta") != 1.0f))) return false;
  if (transposed && !IsConstant(graph, b.data)) return false;
  if (!gemm && IsQuantizedNext(graph, node.outputs[0])) return false;

  const double factor = ScaleAt(graph, a, 0) * (gemm ? node.attrs.Float("alpha") : 1.0f);
  MGE_ASSIGN_OR_RETURN(Tensor scale, ScaledBy(graph, b, static_cast<float>(factor), 0, allocator));
  ValueId matrix = b.data;
  if (transposed) {
    MGE_ASSIGN_OR_RETURN(const Tensor held, graph.value(matrix).constant.Held());
    MGE_ASSIGN_OR_RETURN(Tensor turned, Transposed(held, allocator));
    matrix = AddFreshConstant(graph, graph.value(matrix).name, std::move(turned));
  }
  const ValueId a_zero = ZeroOf(graph, a), b_zero = ZeroOf(graph, b);
  const ValueId factors = AddFreshConstant(graph, graph.value(node.outputs[0]).name + ".scale", std::move(scale));
  NodeAdder nodes(graph, node);
  const ValueId sums = nodes.Add("MatMulInteger", {a.data, matrix, a_zero, b_zero});
  const ValueId floats = nodes.Add("Cast", {sums}, CastTo(DType::kF32));
  if (!has_addend) {
    Replace(graph, id, "Mul", {floats, factors});
    return true;
  }
  const ValueId scaled = nodes.Add("Mul", {floats, factors});
  Replace(graph, id, "Add", {scaled, node.inputs[2]});
  return true;
}

}  // namespace

MGE_REWRITE(integer_product) = {
    .name = "integer_product",
    .doc = "Replaces a MatMul or Gemm of two DequantizeLinear by a MatMulInteger and a scale.",
    .apply = Apply,
    .needs = "MatMulInteger",
    .contains = "DequantizeLinear",
};

}  // namespace mge::rewrite_integer_product
