// SPDX-License-Identifier: Apache-2.0
// Adds nodes to a graph in the form of arithmetic: `dy * (1 - y * y)`. For gradient rules, losses and optimizers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/rewrites/node_adder.h"

namespace mge {

class ExpressionBuilder;

// A value in an expression. Arithmetic on terms adds nodes; a number gets the builder's element type. The builder must outlive
// the term.
class Term {
 public:
  Term(ExpressionBuilder& builder, ValueId id) : builder_(&builder), id_(id) {}
  ExpressionBuilder& builder() const { return *builder_; }
  ValueId id() const { return id_; }

 private:
  ExpressionBuilder* builder_;
  ValueId id_;
};

class ExpressionBuilder : public NodeAdder {
 public:
  // The new values have names that begin with `stem`. `dtype` is the floating type of numbers. `graph` must outlive this object.
  ExpressionBuilder(Graph& graph, std::string stem, DType dtype) : NodeAdder(graph, std::move(stem)), dtype_(dtype) {}
  // The new nodes have the name and device of `node`.
  ExpressionBuilder(Graph& graph, const Node& node, DType dtype) : NodeAdder(graph, node), dtype_(dtype) {}

  DType dtype() const { return dtype_; }

  // Adds any node with one output.
  Term Of(std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return {*this, Add(std::move(op), std::move(inputs), std::move(attrs))};
  }
  using NodeAdder::Number;
  Term Number(double x) { return {*this, NodeAdder::Number(dtype_, x)}; }
  ValueId ShapeOf(const Term& x) { return Add("Shape", {x.id()}); }  // int64[rank]
  // Returns `x` with the shape of `like`, which has as many elements.
  Term ReshapeLike(const Term& x, const Term& like) {
    return Of("Reshape", {x.id(), ShapeOf(like)}, IntAttribute("allowzero", 1));
  }
  // Sums over the dimensions in which `like` would be broadcast to the shape of `x`.
  Term SumTo(const Term& x, const Term& like) { return {*this, AddOurs("SumTo", {x.id(), like.id()})}; }
  Term Fill(double number, const Term& like) { return Of("Expand", {Number(number).id(), ShapeOf(like)}); }
  Term Sum(const Term& x, const Ints& axes) { return Of("ReduceSum", {x.id(), Integers(axes)}); }  // keeps the dimensions
  Term Mean(const Term& x, const Ints& axes) { return Of("ReduceMean", {x.id(), Integers(axes)}); }
  Term SumAll(const Term& x) { return Of("ReduceSum", {x.id()}, IntAttribute("keepdims", 0)); }  // a scalar
  Term MeanAll(const Term& x) { return Of("ReduceMean", {x.id()}, IntAttribute("keepdims", 0)); }
  Term Where(ValueId condition, const Term& a, const Term& b) { return Of("Where", {condition, a.id(), b.id()}); }
  Term CastTo(const Term& x, DType type) { return Of("Cast", {x.id()}, mge::CastTo(type)); }

 private:
  DType dtype_;
};

inline Term Binary(const char* op, const Term& a, const Term& b) { return a.builder().Of(op, {a.id(), b.id()}); }
inline Term Unary(const char* op, const Term& x) { return x.builder().Of(op, {x.id()}); }
inline Term operator+(const Term& a, const Term& b) { return Binary("Add", a, b); }
inline Term operator-(const Term& a, const Term& b) { return Binary("Sub", a, b); }
inline Term operator*(const Term& a, const Term& b) { return Binary("Mul", a, b); }
inline Term operator/(const Term& a, const Term& b) { return Binary("Div", a, b); }
inline Term operator-(const Term& x) { return Unary("Neg", x); }
inline Term operator+(const Term& a, double b) { return a + a.builder().Number(b); }
inline Term operator-(const Term& a, double b) { return a - a.builder().Number(b); }
inline Term operator*(const Term& a, double b) { return a * a.builder().Number(b); }
inline Term operator/(const Term& a, double b) { return a / a.builder().Number(b); }
inline Term operator+(double a, const Term& b) { return b.builder().Number(a) + b; }
inline Term operator-(double a, const Term& b) { return b.builder().Number(a) - b; }
inline Term operator*(double a, const Term& b) { return b.builder().Number(a) * b; }
inline Term operator/(double a, const Term& b) { return b.builder().Number(a) / b; }
// Comparisons return bool values, for Where().
inline ValueId operator>(const Term& a, const Term& b) { return Binary("Greater", a, b).id(); }
inline ValueId operator>(const Term& a, double b) { return a > a.builder().Number(b); }
inline ValueId operator<(const Term& a, const Term& b) { return Binary("Less", a, b).id(); }
inline ValueId operator<(const Term& a, double b) { return a < a.builder().Number(b); }

}  // namespace mge
