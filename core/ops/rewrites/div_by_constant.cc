// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/pattern.h"

namespace mge::rewrite_div_by_constant {
namespace {

// Returns 1/x if it is exact and a normal number, else 0. The product is then bitwise equal to the quotient.
double ExactReciprocal(double x, DType dtype) {
  int exponent = 0;
  int limit = dtype == DType::kF64 ? 1020 : dtype == DType::kF16 ? 13 : 124;
  return std::abs(std::frexp(x, &exponent)) == 0.5 && std::abs(exponent) <= limit ? 1 / x : 0;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node& node = graph.node(id);
  if (!IsOp(node, "Div") || !IsConstant(graph, node.inputs[1])) return false;
  const Value& divisor = graph.value(node.inputs[1]);
  const DType dtype = divisor.constant.dtype();
  bool exact = kFloating.Contains(dtype) && divisor.constant.elements() > 0;
  if (!exact) return false;
  MGE_ASSIGN_OR_RETURN(Tensor factor, Tensor::Create(dtype, divisor.constant.shape(), allocator));
  DispatchFloating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto in = divisor.constant.Data<T>();
    auto out = factor.MutableData<T>();
    for (size_t i = 0; i < in.size() && exact; ++i) {
      double reciprocal = ExactReciprocal(static_cast<double>(in[i]), dtype);
      exact = reciprocal != 0;
      out[i] = static_cast<T>(static_cast<Compute<T>>(reciprocal));
    }
  });
  if (!exact) return false;
  ValueId x = node.inputs[0];
  ValueId factor_id = AddFreshConstant(graph, divisor.name, std::move(factor));
  Replace(graph, id, "Mul", {x, factor_id});
  return true;
}

}  // namespace

MGE_REWRITE(div_by_constant) = {.name = "div_by_constant",
                                .doc = "Replaces division by constant powers of two by an equal multiplication.",
                                .apply = Apply};

}  // namespace mge::rewrite_div_by_constant
