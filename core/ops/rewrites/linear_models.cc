// SPDX-License-Identifier: Apache-2.0
// Replaces the linear models of ai.onnx.ml by a Gemm, for which backends have kernels. A LinearLabels chooses the labels of a
// classifier, which may be strings.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/ops/families/linear_model.h"
#include "core/ops/rewrites/node_adder.h"

namespace mge::rewrite_linear_models {
namespace {

absl::StatusOr<Tensor> Matrix(const Floats& values, int64_t rows, HostAllocator& allocator) {
  const auto count = static_cast<int64_t>(values.size());
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF32, {rows, count / rows}, allocator));
  std::copy(values.begin(), values.end(), out.MutableData<float>().begin());
  return out;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator& allocator) {
  const Node node = graph.node(id);  // a copy: adding nodes moves it
  const bool classifier = node.op == "LinearClassifier";
  if (node.domain != kMlDomain || (!classifier && node.op != "LinearRegressor")) return false;
  if (!classifier && node.attrs.Text("post_transform") != "NONE") return false;
  const TensorType x_type = graph.value(node.inputs[0]).type;
  if (x_type.dtype == DType::kUndefined || !x_type.has_rank || x_type.dims.size() != 2) return false;
  absl::StatusOr<LinearModel> model = ReadLinearModel(node.attrs, x_type.dims[1]);
  if (!model.ok() || model->targets < 1 || model->coefficients.empty()) return false;
  if (static_cast<int64_t>(model->coefficients.size()) % model->targets != 0) return false;
  MGE_ASSIGN_OR_RETURN(Tensor coefficients, Matrix(model->coefficients, model->targets, allocator));

  NodeAdder nodes(graph, node);
  const ValueId x = x_type.dtype == DType::kF32 ? node.inputs[0] : nodes.Add("Cast", {node.inputs[0]}, CastTo(DType::kF32));
  std::vector<ValueId> inputs = {x, nodes.Constant(std::move(coefficients))};
  if (!model->intercepts.empty()) inputs.push_back(nodes.Constant(Tensor::Vector<float>(model->intercepts)));
  const ValueId scores = classifier ? graph.AddTemporary(node.name) : node.outputs[0];
  nodes.AddTo({scores}, "Gemm", std::move(inputs), IntAttribute("transB", 1));
  if (classifier) {
    Attributes attrs = node.attrs;
    for (std::string_view name : {"coefficients", "intercepts", "multi_class"}) attrs.Remove(name);
    nodes.AddTo(node.outputs, "LinearLabels", {scores}, std::move(attrs), "mge");
  }
  graph.RemoveNode(id);
  return true;
}

}  // namespace

MGE_REWRITE(linear_models) = {
    .name = "linear_models", .doc = "Replaces LinearRegressor and LinearClassifier by a Gemm.", .apply = Apply};

}  // namespace mge::rewrite_linear_models
