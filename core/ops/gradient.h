// SPDX-License-Identifier: Apache-2.0
// Gradient rules: each differentiable operator has a function in its row that adds nodes for the gradients of its inputs.
//
//   absl::Status Gradient(GradientContext& g) {  // of Tanh
//     return g.Set(0, g.dy() * (1 - g.y() * g.y()));
//   }
//
// The gradient of a value x is that of a scalar, the loss, by x. It has the type and shape of x. A rule gets the gradients of
// the node's outputs and gives those of its inputs. It consists of other operators, so that backends need no kernels of
// their own for it. Shapes may be unknown: a rule is written for all of them. core/autodiff calls the rules.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/expression.h"
#include "core/ops/op.h"

namespace mge {

// The node of a rule, the gradients of its outputs, and those that the rule gives. New nodes have the node's name and device.
class GradientContext : public ExpressionBuilder {
 public:
  // `inputs` are the values that the rule reads, the node's own or equal ones. `gradients` are those of the node's outputs,
  // kNone for one that the loss does not depend on. `wanted` says for which inputs, and then for which captures, gradients are
  // needed, at least one. `graph` must outlive this object.
  GradientContext(Graph& graph, NodeId id, std::vector<ValueId> inputs, std::vector<ValueId> gradients,
                  std::vector<bool> wanted);

  const Attributes& attrs() const { return node_.attrs; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int i) const { return i < input_count() && node_.inputs[static_cast<size_t>(i)] != kNone; }
  // Returns whether the rule must give the gradient of input `i`.
  bool wants(int i) const { return static_cast<size_t>(i) < wanted_.size() && wanted_[static_cast<size_t>(i)]; }
  const TensorType& type(int i) const { return graph_.value(node_.inputs[static_cast<size_t>(i)]).type; }
  // Returns the number of dimensions of input `i`. Fails with kUnsupportedFeature if it is unknown.
  absl::StatusOr<int64_t> Rank(int i) const;
  // Returns the elements of input `i` if they are constant, else null. The tensor is valid until the next value is added.
  /*nullable*/ const Tensor* constant(int i) const;

  Term x(int i = 0) { return {*this, node_.inputs[static_cast<size_t>(i)]}; }  // requires has_input(i)
  Term y(int i = 0);  // adds the output to the node if the model does not use it
  // Returns the gradient of output `i`; zeros if the loss does not depend on it.
  Term dy(int i = 0);
  bool has_dy(int i) const {
    return static_cast<size_t>(i) < gradients_.size() && gradients_[static_cast<size_t>(i)] != kNone;
  }

  // Sets the gradient of input `i`. Ignored if it is not wanted.
  absl::Status Set(int i, const Term& gradient);
  // Sets the gradient of input `i`, which was broadcast: sums over the dimensions in which it was repeated.
  absl::Status SetSum(int i, const Term& gradient) { return Set(i, wants(i) ? SumTo(gradient, x(i)) : gradient); }
  // Returns the gradients that were set, of inputs and then of captures; kNone for the others.
  const std::vector<ValueId>& input_gradients() const { return input_gradients_; }

  // Sets all gradients that are wanted and not set, also of captures, as those of the operators that replace the node when the
  // shapes are known: its OpDef::gradient_body or OpDef::body, or the result of a rewrite. The error for one without a rule
  // comes at that time.
  absl::Status SetByReplacement();

  // Returns a kUnsupportedFeature error: `what` has no gradient.
  absl::Status Unsupported(std::string what) const;

 private:
  Graph& graph_;
  const NodeId id_;
  Node node_;  // a copy: adding nodes moves it
  std::vector<ValueId> gradients_, input_gradients_;
  std::vector<bool> wanted_;
};

// The rule of an operator whose output does not change with small changes of its inputs (Floor, Sign).
inline absl::Status ZeroGradient(GradientContext&) { return absl::OkStatus(); }
// The rule of an operator that keeps the elements and their order (Reshape, Squeeze, Identity).
inline absl::Status SameElementsGradient(GradientContext& g) { return g.Set(0, g.ReshapeLike(g.dy(), g.x())); }
// The rule of an operator that a rewrite or OpDef::gradient_body replaces.
inline absl::Status ReplacementGradient(GradientContext& g) { return g.SetByReplacement(); }

// Returns the rule of an operator: that of its row, or that of its body. Null if it has none.
/*nullable*/ GradientFn RuleOf(const OpDef& def);

// Returns whether input `i` of the operator is a setting: constants that only settings read are no parameters. It may have a
// gradient nevertheless, which its rule sets.
inline bool IsFixedInput(const OpDef& def, size_t i) { return i < 32 && (def.fixed_inputs >> i & 1) != 0; }

// The node that a rule reads, and its inputs: the node itself, or one that computes the same again.
struct GradientSource {
  NodeId node;
  std::vector<ValueId> inputs;
};

// Calls the rules of the nodes between `wanted` and the values that have gradients, backwards. `gradients` holds the gradient
// of each value of the graph or kNone, and receives those of the other values. kNone then stands for zeros. `source` is called
// for each node whose rule is. Fails with kUnsupportedFeature, which names the node, if an operator has no rule, and if a wanted
// value gets no gradient because rules of its readers set none.
absl::Status GoBackwards(Graph& graph, std::span<const ValueId> wanted, std::vector<ValueId>& gradients,
                         const std::function<GradientSource(NodeId)>& source);

}  // namespace mge
