// SPDX-License-Identifier: Apache-2.0
// Function operators: operators that other operators compute. The row has a function that adds these nodes, its body:
//
//   absl::StatusOr<bool> Body(FunctionBody& f) {
//     f.Result(0, "Gelu", {f.Add("Add", {f.input(0), f.input(1)})});
//     return true;
//   }
//   MGE_OP(bias_gelu) = MicrosoftFunction({.name = "BiasGelu", ..., .body = Body});
//
// The planner replaces each node by its body, so that backends, rewrites and fusions see only the other operators. It keeps a
// node for which all devices have a kernel.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/expression.h"
#include "core/ops/op.h"

namespace mge {

// Adds the nodes of one body, and reads the node that they replace.
class FunctionBody : public ExpressionBuilder {
 public:
  // `graph` must outlive this object.
  FunctionBody(Graph& graph, NodeId id)
      : ExpressionBuilder(graph, graph.node(id), FirstType(graph, graph.node(id))), graph_(graph), node_(graph.node(id)) {}

  const Attributes& attrs() const { return node_.attrs; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  bool has_input(int i) const { return i < input_count() && node_.inputs[static_cast<size_t>(i)] != kNone; }
  // Returns kNone for an absent input or output.
  ValueId input(int i) const { return has_input(i) ? node_.inputs[static_cast<size_t>(i)] : kNone; }
  // Returns the values of the graph around it that a body of the node reads.
  const std::vector<ValueId>& captures() const { return node_.captures; }
  ValueId output(int i) const {
    return static_cast<size_t>(i) < node_.outputs.size() ? node_.outputs[static_cast<size_t>(i)] : kNone;
  }
  // The following require has_input(i).
  Term x(int i = 0) { return {*this, input(i)}; }
  TensorType type(int i) const { return graph_.value(input(i)).type; }
  using ExpressionBuilder::dtype;
  DType dtype(int i) const { return graph_.value(input(i)).type.dtype; }
  bool has_rank(int i) const { return graph_.value(input(i)).type.has_rank; }
  Shape dims(int i) const { return graph_.value(input(i)).type.dims; }
  int64_t rank(int i) const { return static_cast<int64_t>(graph_.value(input(i)).type.dims.size()); }
  // Returns the elements of an input if they are known, else null. The tensor is valid until the next value is added.
  /*nullable*/ const Tensor* constant(int i) const {
    return IsConstant(graph_, input(i)) ? &graph_.value(input(i)).constant : nullptr;
  }
  const Value& value(ValueId v) const { return graph_.value(v); }
  // Returns whether the shapes of all inputs are known.
  bool IsStatic() const;

  // Adds the node that computes output `i`. Adds nothing if that output is absent.
  void Result(int i, std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    if (output(i) != kNone) AddTo({output(i)}, std::move(op), std::move(inputs), std::move(attrs));
  }
  // Adds a node whose body reads `captures`. Returns its outputs.
  std::vector<ValueId> AddWithBody(std::string op, std::vector<ValueId> inputs, std::vector<ValueId> captures,
                                   size_t outputs, Attributes attrs);
  // Copies the nodes of a graph. Its inputs stand for `inputs`. Returns the values that stand for its outputs.
  std::vector<ValueId> Inline(const Graph& graph, std::span<const ValueId> inputs);
  // Returns a new value, for AddTo().
  ValueId NewValue() { return graph_.AddTemporary(node_.name.empty() ? node_.op : node_.name); }
  // Adds a node of the domain com.microsoft.
  ValueId AddMicrosoft(std::string op, std::vector<ValueId> inputs, Attributes attrs = {});
  void AddMicrosoftTo(std::vector<ValueId> outputs, std::string op, std::vector<ValueId> inputs, Attributes attrs = {});
  // Adds a node in the form of an older operator set. 0 is the newest form.
  ValueId AddVersion(int version, std::string op, std::vector<ValueId> inputs, Attributes attrs = {});
  // Returns the sum, or `x` if `addend` is kNone.
  ValueId Plus(ValueId x, ValueId addend) { return addend == kNone ? x : Add("Add", {x, addend}); }
  // If the only input is in a 16-bit type, adds the same node in float32 between conversions, so that the body rounds once.
  // Returns false, and adds nothing, for other types.
  bool AppliesInFloat32();
  // Returns the attributes with these names that the node has.
  Attributes Only(std::initializer_list<std::string_view> names) const;

  // Return a kInvalidNode or kUnsupportedFeature error that names the node.
  absl::Status Invalid(std::string what) const;
  absl::Status Unsupported(std::string what) const;

 private:
  // Returns the element type of the first present input, which numbers in expressions get.
  static DType FirstType(const Graph& graph, const Node& node) {
    const auto first = std::ranges::find_if(node.inputs, [](ValueId v) { return v != kNone; });
    return first == node.inputs.end() ? DType::kUndefined : graph.value(*first).type.dtype;
  }

  Graph& graph_;
  const Node node_;  // a copy: adding nodes moves it
};

// Replaces a bound node of a function operator by its body, and binds the new nodes. Returns false, and leaves the node, if
// more must be known about its inputs.
absl::StatusOr<bool> ExpandFunction(Graph& graph, NodeId id);
// Does the same with another body.
absl::StatusOr<bool> ExpandFunction(Graph& graph, NodeId id, BodyFn make);

// Infers the types of the outputs from the body. They are unknown until the body can be made.
absl::Status InferByBody(InferContext& ctx);

// Computes the outputs with the evaluators of the body's nodes.
absl::Status EvalByBody(EvalContext& ctx);

// Completes the row of a function operator of com.microsoft whose shape rule and evaluator are its body's.
constexpr OpDef MicrosoftFunction(OpDef row) {
  row.domain = "com.microsoft";
  if (row.outputs.size() == 0) row.outputs = {{"Y"}};
  if (!row.infer) row.infer = InferByBody;
  row.eval = EvalByBody;
  return row;
}

}  // namespace mge
