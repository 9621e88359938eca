// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/quantized.h"

namespace mge::rewrite_quantized_matmul {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const std::optional<Quantization> y = FindQuantized(graph, graph.node(id));
  if (!y || !y->Is8Bit()) return false;
  const ValueId last = graph.node(id).inputs[0], result = BeforeClip(graph, last, *y);
  const Node* found = Producer(graph, result, "MatMul");
  if (!found || !ServesOnlyThrough(graph, result, last, id)) return false;
  const Node product = *found;  // a copy: adding nodes moves it
  const std::optional<ProductOperands> operands = FindProductOperands(graph, product, /*transposed=*/false);
  if (!operands) return false;
  const auto& [a, b] = *operands;
  const ValueId a_zero = ZeroOf(graph, a), b_zero = ZeroOf(graph, b), y_zero = ZeroOf(graph, *y);
  Node& quantized =
      graph.node(Replace(graph, id, "QLinearMatMul", {a.data, a.scale, a_zero, b.data, b.scale, b_zero, y->scale, y_zero}));
  quantized.name = product.name;
  quantized.device = product.device;
  return true;
}

}  // namespace

MGE_REWRITE(quantized_matmul) = {
    .name = "quantized_matmul",
    .doc = "Replaces a MatMul between DequantizeLinear and QuantizeLinear by a QLinearMatMul.",
    .apply = Apply,
    .needs = "QLinearMatMul",
    .contains = "DequantizeLinear",
};

}  // namespace mge::rewrite_quantized_matmul
