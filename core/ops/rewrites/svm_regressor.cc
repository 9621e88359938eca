// SPDX-License-Identifier: Apache-2.0
// Replaces support vector machines whose kernel is a function of products by matrix products. An RBF kernel stays: its squared
// distances would lose digits as differences of products.
#include <utility>
#include <vector>

#include "core/ops/expression.h"
#include "core/ops/families/svm.h"

namespace mge::rewrite_svm_regressor {
namespace {

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  if (node.domain != kMlDomain || node.op != "SVMRegressor") return false;
  if (node.attrs.Text("post_transform") != "NONE" || node.attrs.Int("one_class") != 0) return false;
  const TensorType x_type = graph.value(node.inputs[0]).type;
  if (x_type.dtype == DType::kUndefined || !x_type.has_rank || x_type.dims.size() != 2) return false;
  absl::StatusOr<Svm> svm = ReadSvm(node.attrs, node.attrs.Int("n_supports"), 1);
  if (!svm.ok() || svm->kernel == SvmKernel::kRbf || svm->columns != x_type.dims[1]) return false;
  const int64_t last = svm->count > 0 ? svm->count : svm->columns;  // rows of the last product
  if (static_cast<int64_t>(svm->coefficients.size()) != last) return false;
  auto matrix = [&](const Floats& values, int64_t rows) -> absl::StatusOr<Tensor> {
    MGE_ASSIGN_OR_RETURN(Tensor out,
                         Tensor::Create(DType::kF32, {rows, static_cast<int64_t>(values.size()) / rows}, allocator));
    std::ranges::copy(values, out.MutableData<float>().begin());
    return out;
  };
  MGE_ASSIGN_OR_RETURN(Tensor coefficients, matrix(svm->coefficients, last));
  Tensor vectors;
  if (svm->count > 0) {
    MGE_ASSIGN_OR_RETURN(vectors, matrix(svm->vectors, svm->columns));
  }

  ExpressionBuilder b(graph, node, DType::kF32);
  Term k(b, b.Cast(node.inputs[0], x_type.dtype, DType::kF32));
  if (svm->count > 0) k = b.Of("MatMul", {k.id(), b.Constant(std::move(vectors))});
  if (svm->kernel != SvmKernel::kLinear) k = k * svm->gamma + svm->coef0;
  if (svm->kernel == SvmKernel::kPoly) k = Binary("Pow", k, b.Number(svm->degree));
  if (svm->kernel == SvmKernel::kSigmoid) k = Unary("Tanh", k);
  b.AddTo({node.outputs[0]}, "Gemm", {k.id(), b.Constant(std::move(coefficients)), b.Number(svm->rho[0]).id()});
  graph.RemoveNode(id);
  return true;
}

}  // namespace

MGE_REWRITE(svm_regressor) = {
    .name = "svm_regressor",
    .doc = "Replaces an SVMRegressor whose kernel is linear, a polynomial or a sigmoid by products.",
    .apply = Apply};

}  // namespace mge::rewrite_svm_regressor
