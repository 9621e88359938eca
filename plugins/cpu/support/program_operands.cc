// SPDX-License-Identifier: Apache-2.0
#include "support/program_operands.h"

#include "mge/plugin/problems/quantize.hpp"
#include "support/elementwise_ops.h"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

bool HasScales(const Node& n) {
  Elementwise e;
  return ReadElementwise(n, &e) && (e.form == Form::kQuantize || e.form == Form::kDequantize);
}

}  // namespace

Result FindScaleAxes(const Problem& p, std::vector<int>* out) {
  std::vector<int>& axes = *out;
  axes.assign(static_cast<size_t>(p.input_count()), -1);
  for (int i = 0; i < p.node_count(); ++i) {
    const Node n = p.node(i);
    if (!HasScales(n)) continue;
    const Quantization q = ReadQuantization(n);
    if (q.block) return {MGE_UNIMPLEMENTED, "scales of blocks"};
    for (int k = 1; k < 3; ++k) {
      if (!n.has_input(k) || n.input(k).elements() == 1) continue;
      const int input = p.operand(i, k);
      if (input < 0 || n.input(k).rank() != 1 || n.input(k).dim(0) != n.output(0).dim(static_cast<int>(q.axis))) {
        return {MGE_UNIMPLEMENTED, "scales that are neither one nor one per index of an axis"};
      }
      int& known = axes[static_cast<size_t>(input)];
      if (known >= 0 && known != q.axis) return {MGE_UNIMPLEMENTED, "scales of two axes"};
      known = static_cast<int>(q.axis);
    }
  }
  for (int i = 0; i < p.node_count(); ++i) {
    const Node n = p.node(i);
    const bool scales = HasScales(n);
    for (int k = 0; k < n.input_count(); ++k) {
      const int input = p.operand(i, k);
      if (input >= 0 && axes[static_cast<size_t>(input)] >= 0 && !(scales && k > 0))
        return {MGE_UNIMPLEMENTED, "scales that are also data"};
    }
  }
  return {};
}

void Collapse(std::vector<int64_t>& dims, std::vector<std::vector<int64_t>>& strides) {
  for (size_t d = dims.size(); d-- > 0;) {
    bool drop = dims[d] == 1;
    bool join = false;
    if (!drop && d + 1 < dims.size()) {
      join = true;
      for (auto& s : strides) join &= s[d] == s[d + 1] * dims[d + 1];
    }
    if (!drop && !join) continue;
    if (join) {
      dims[d + 1] *= dims[d];
    }
    dims.erase(dims.begin() + static_cast<int64_t>(d));
    for (auto& s : strides) s.erase(s.begin() + static_cast<int64_t>(d));
  }
  if (dims.empty()) {
    dims.push_back(1);
    for (auto& s : strides) s.push_back(0);
  }
}

bool IsFalse(const Value& v) { return v.is_constant() && v.elements() == 1 && !v.data<uint8_t>()[0]; }

bool HoldsNoneBelow(const Value& v, int64_t least) {
  if (!v.is_constant()) return v.elements() == 0;
  bool good = true;
  bool known = DispatchInteger(v.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T x : v.data<T>()) good &= x >= 0 && static_cast<uint64_t>(x) >= static_cast<uint64_t>(least);
  });
  return known && good;
}

bool HoldsNoZero(const Value& v) {
  if (!v.is_constant()) return v.elements() == 0;
  bool good = true;
  const bool known = DispatchInteger(v.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T x : v.data<T>()) good &= x != 0;
  });
  return known && good;
}

double NumberOf(const Value& v) {
  switch (v.dtype()) {
    case MGE_DTYPE_F32: return v.data<float>()[0];
    case MGE_DTYPE_F64: return v.data<double>()[0];
    case MGE_DTYPE_I32: return v.data<int32_t>()[0];
    case MGE_DTYPE_I64: return static_cast<double>(v.data<int64_t>()[0]);
    default: return 0;
  }
}

}  // namespace mge::cpu
