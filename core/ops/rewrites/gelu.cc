// SPDX-License-Identifier: Apache-2.0
// Recognises Gelu written as simple operators. Exporters differ in the order of factors and the place of constants.
// Therefore the expression is expanded into a polynomial of x and t = erf(..) or tanh(..), and its coefficients are
// compared.
#include <array>
#include <numbers>

#include "core/ops/rewrites/pattern.h"

namespace mge::rewrite_gelu {
namespace {

constexpr int kDegree = 3;  // maximum power of x; that of t is 1

struct Polynomial {
  std::array<std::array<double, 2>, kDegree + 1> at = {};  // at[i][j]: coefficient of x^i t^j

  bool IsNumber() const {
    for (int i = 0; i <= kDegree; ++i) {
      if (at[i][1] != 0 || (i > 0 && at[i][0] != 0)) return false;
    }
    return true;
  }
  bool Is(const Polynomial& other, DType dtype) const {
    for (int i = 0; i <= kDegree; ++i) {
      if (!Near(at[i][0], other.at[i][0], dtype) || !Near(at[i][1], other.at[i][1], dtype)) return false;
    }
    return true;
  }
};

std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial out;
  for (int i = 0; i <= kDegree; ++i) {
    for (int k = 0; k <= kDegree; ++k) {
      for (int j = 0; j < 2; ++j) {
        for (int l = 0; l < 2; ++l) {
          double term = a.at[i][j] * b.at[k][l];
          if (term == 0) continue;
          if (i + k > kDegree || j + l > 1) return std::nullopt;
          out.at[i + k][j + l] += term;
        }
      }
    }
  }
  return out;
}

// Expands the expression of a value as a polynomial of x and t.
class Expansion {
 public:
  Expansion(const Graph& graph, ValueId x, ValueId t) : graph_(graph), x_(x), t_(t) {}

  std::optional<Polynomial> Of(ValueId value) {
    if (++visits_ > 32) return std::nullopt;
    Polynomial out;
    if (value == x_ || value == t_) {
      out.at[value == x_][value == t_] = 1;
      return out;
    }
    if (std::optional<double> number = ConstantNumber(graph_, value)) {
      out.at[0][0] = *number;
      return out;
    }
    if (value == kNone || graph_.value(value).producer == kNone) return std::nullopt;
    const Node& node = graph_.node(graph_.value(value).producer);
    bool add = IsOp(node, "Add"), mul = IsOp(node, "Mul"), div = IsOp(node, "Div"), pow = IsOp(node, "Pow");
    if (!add && !mul && !div && !pow) return std::nullopt;
    inner_.push_back(value);
    std::optional<Polynomial> a = Of(node.inputs[0]), b = Of(node.inputs[1]);
    if (!a || !b) return std::nullopt;
    if (mul) return Product(*a, *b);
    if (add) {
      for (int i = 0; i <= kDegree; ++i) {
        for (int j = 0; j < 2; ++j) out.at[i][j] = a->at[i][j] + b->at[i][j];
      }
      return out;
    }
    if (!b->IsNumber()) return std::nullopt;
    double number = b->at[0][0];
    if (div) {
      Polynomial inverse;
      inverse.at[0][0] = 1 / number;
      return number == 0 ? std::nullopt : Product(*a, inverse);
    }
    if (number != 2 && number != 3) return std::nullopt;
    std::optional<Polynomial> square = Product(*a, *a);
    return number == 2 || !square ? square : Product(*square, *a);
  }

  const std::vector<ValueId>& inner() const { return inner_; }

 private:
  const Graph& graph_;
  ValueId x_, t_;
  int visits_ = 0;
  std::vector<ValueId> inner_;  // expanded values, the first one is the result
};

// Returns the values a few arithmetic operators before `value`, nearest first, without `value` itself.
std::vector<ValueId> Nearby(const Graph& graph, ValueId value) {
  constexpr size_t kLimit = 16;
  std::vector<ValueId> found = {value};
  for (size_t i = 0; i < found.size() && found.size() < kLimit; ++i) {
    NodeId producer = graph.value(found[i]).producer;
    if (producer == kNone) continue;
    const Node& node = graph.node(producer);
    if (!IsOp(node, "Add") && !IsOp(node, "Mul") && !IsOp(node, "Div") && !IsOp(node, "Pow")) continue;
    for (ValueId v : node.inputs) {
      if (v != kNone && !IsConstant(graph, v) && std::find(found.begin(), found.end(), v) == found.end()) {
        found.push_back(v);
      }
    }
  }
  found.erase(found.begin());
  return found;
}

Polynomial Argument(bool erf) {
  Polynomial p;
  if (erf) {
    p.at[1][0] = 1 / std::numbers::sqrt2;
  } else {
    p.at[1][0] = std::sqrt(2 / std::numbers::pi);
    p.at[3][0] = 0.044715 * p.at[1][0];
  }
  return p;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& node = graph.node(id);
  if (!IsOp(node, "Mul") && !IsOp(node, "Div")) return false;
  const ValueId result = node.outputs[0];
  const DType dtype = graph.value(result).type.dtype;
  Polynomial whole;
  whole.at[1][0] = whole.at[1][1] = 0.5;
  for (ValueId t : Nearby(graph, result)) {
    bool erf = Producer(graph, t, "Erf") != nullptr;
    const Node* function = Producer(graph, t, erf ? "Erf" : "Tanh");
    if (!function) continue;
    ValueId argument = function->inputs[0];
    for (ValueId x : Nearby(graph, argument)) {
      if (!SameTypeAndRank(graph.value(x), graph.value(result))) continue;
      Expansion inside(graph, x, kNone), outside(graph, x, t);
      std::optional<Polynomial> a = inside.Of(argument);
      if (!a || !a->Is(Argument(erf), dtype)) continue;
      std::optional<Polynomial> all = outside.Of(result);
      if (!all || !all->Is(whole, dtype)) continue;
      std::vector<ValueId> inner = inside.inner();
      inner.insert(inner.end(), outside.inner().begin() + 1, outside.inner().end());  // the first one is `result`
      inner.push_back(t);
      if (!ServeOnly(graph, inner, id)) continue;
      NodeId gelu = Replace(graph, id, "Gelu", {x});
      if (!erf) graph.node(gelu).attrs.Set("approximate", std::string("tanh"));
      return true;
    }
  }
  return false;
}

}  // namespace

MGE_REWRITE(gelu) = {
    .name = "gelu", .doc = "Replaces 0.5 x (1 + erf(x / sqrt(2))), or its tanh form, by a Gelu.", .apply = Apply};

}  // namespace mge::rewrite_gelu
