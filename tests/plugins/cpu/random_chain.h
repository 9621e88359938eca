// SPDX-License-Identifier: Apache-2.0
// Elementwise chains and their numbers, for tests of generated code.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/backend_harness.h"

namespace mge::testing {

// Returns n numbers: every special one, then random ones of many magnitudes.
inline Tensor Special(DType t, Shape shape, uint64_t seed) {
  const double inf = INFINITY;
  const std::vector<double> special = {0.0,      -0.0,    inf,  -inf, NAN,  1e-40, -1e-40, 1.4e-45, 3.4e38,
                                       -3.4e38,  1,       -1,   0.5,  -0.5, 1.5,   2.5,    -2.5,    0.625,
                                       0.93,     -0.93,   88.8, -104, 6e4,  -6e4,  65520,  5.9e-8,  -5.9e-8,
                                       1.17e-38, 8388609, -7.5, 3,    -3,   255,   256.5,  1e-3,    92.5};
  std::mt19937_64 random(seed);
  std::vector<double> values;
  const int64_t n = Elements(shape);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t r = random();
    if (r % 4 == 0) {
      values.push_back(special[(r >> 8) % special.size()]);
    } else {
      const double unit = static_cast<double>(r >> 11) * 0x1p-53 * 2 - 1;
      values.push_back(unit * std::exp2(static_cast<double>((r >> 2) % 5) * 2 - 3));
    }
  }
  if (t == DType::kBool) {
    for (double& v : values) v = v > 0 ? 1 : 0;
  } else if (t == DType::kI8 || t == DType::kU8) {
    for (double& v : values)
      v = std::isfinite(v) ? std::clamp(std::round(v * 40), t == DType::kU8 ? 0.0 : -128.0, 127.0) : 3;
  }
  return Fill(t, std::move(shape), values);
}

// An operator of one operand with its attributes.
struct Unary {
  const char* op;
  Attributes attrs = {};
};

// Returns the functions of one operand that have generated code.
inline std::vector<Unary> UnaryOps() {
  std::vector<Unary> ops;
  for (const char* op :
       {"Abs",       "Neg",       "Sign", "Relu",    "Ceil", "Floor",       "Round",           "Sqrt",   "Reciprocal",
        "Exp",       "Log",       "Tanh", "Sigmoid", "Erf",  "Softplus",    "Softsign",        "Gelu",   "Mish",
        "HardSwish", "LeakyRelu", "Elu",  "Celu",    "Selu", "HardSigmoid", "ThresholdedRelu", "Shrink", "Swish"}) {
    ops.push_back({op});
  }
  ops.push_back({"Gelu", With({{"approximate", std::string("tanh")}})});
  ops.push_back({"Celu", With({{"alpha", 0.7f}})});
  ops.push_back({"Elu", With({{"alpha", 1.7f}})});
  ops.push_back({"Swish", With({{"alpha", 1.3f}})});
  ops.push_back({"LeakyRelu", With({{"alpha", -0.3f}})});
  ops.push_back({"Shrink", With({{"lambd", 0.8f}, {"bias", 0.25f}})});
  return ops;
}

// A chain of random operators, shapes and types. Values are read several times, and some are outputs.
class RandomChain {
 public:
  explicit RandomChain(uint64_t seed) : random_(seed) {}

  Case Make() {
    const DType types[] = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16};
    type_ = types[Below(4)];
    const Shape shapes[] = {
        {1 + Below(40)}, {Below(3) + 1, 1 + Below(300)}, {2, 3, 1 + Below(20), 1 + Below(20)}, {1 + Below(3000)}};
    shape_ = shapes[Below(4)];
    c_.name = "random";
    values_ = {Input(shape_)};
    const int64_t length = 3 + Below(25);
    for (int64_t i = 0; i < length; ++i) AddNode();
    // Every value that no node reads is an output, and some others.
    for (ValueId v : values_) {
      if (!read_[v] ? v != values_[0] : made_[v] && Below(12) == 0) c_.graph.outputs().push_back(v);
    }
    return std::move(c_);
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  ValueId Input(const Shape& shape) {
    const std::string name = "x" + std::to_string(c_.inputs.size());
    Tensor t = Special(type_, shape, random_());
    const ValueId v = c_.graph.AddInput(name, {t.dtype(), true, t.shape(), {}});
    c_.inputs.push_back(std::move(t));
    return v;
  }

  ValueId Any() { return values_[static_cast<size_t>(Below(static_cast<int64_t>(values_.size())))]; }

  ValueId Operand() {
    if (Below(3) > 0) return Any();
    Shape shape = shape_;
    for (int64_t& d : shape) d = Below(2) ? d : 1;
    if (Below(3) == 0) shape = {};
    if (Below(2)) return c_.graph.AddConstant("k" + std::to_string(count_++), Special(type_, shape, random_()));
    return Input(shape);
  }

  ValueId Node(const char* op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    mge::Node n;
    n.op = op;
    n.name = op + std::to_string(count_++);
    n.version = 24;
    n.attrs = std::move(attrs);
    for (ValueId v : inputs) read_[v] = true;
    n.inputs = std::move(inputs);
    const ValueId out = c_.graph.AddTemporary("t" + std::to_string(count_));
    n.outputs = {out};
    c_.graph.AddNode(std::move(n));
    return out;
  }

  void AddNode() {
    static const std::vector<Unary> kUnary = UnaryOps();
    static const char* const kBinary[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Add", "Mul"};
    const ValueId recent = Below(2) ? values_.back() : Any();
    ValueId out;
    switch (Below(8)) {
      case 0: {
        const ValueId condition = Node("Less", {recent, Operand()});
        out = Node("Where", {condition, Any(), Any()});
        break;
      }
      case 1: {  // no generated code
        out = Below(3) ? Node("Sin", {recent}) : Node("Abs", {recent});
        break;
      }
      case 2:
      case 3:
      case 4: {
        const Unary& u = kUnary[static_cast<size_t>(Below(static_cast<int64_t>(kUnary.size())))];
        out = Node(u.op, {recent}, u.attrs);
        break;
      }
      default: out = Node(kBinary[Below(8)], {recent, Operand()}); break;
    }
    made_[out] = true;
    values_.push_back(out);
  }

  std::mt19937_64 random_;
  Case c_;
  DType type_ = DType::kF32;
  Shape shape_;
  std::vector<ValueId> values_;
  std::map<ValueId, bool> read_, made_;
  int64_t count_ = 0;
};

}  // namespace mge::testing
