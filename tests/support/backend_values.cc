// SPDX-License-Identifier: Apache-2.0
// Tensors and one-node graphs for the harness.
#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/support/backend_harness.h"

namespace mge::testing {

double At(const Tensor& t, int64_t i) {
  double r = 0;
  DispatchFixedSize(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      r = static_cast<float>(t.Data<T>()[i]);
    } else {
      r = static_cast<double>(t.Data<T>()[i]);
    }
  });
  return r;
}

Tolerance ToleranceOf(DType dtype, double factor) {
  switch (dtype) {
    case DType::kF64: return {1e-14 * factor, 1e-14 * factor};
    case DType::kF16: return {1e-3 * factor, 1e-3 * factor};
    case DType::kBF16: return {8e-3 * factor, 8e-3 * factor};
    case DType::kF32: return {2e-7 * factor, 2.4e-7 * factor};
    default: return {};
  }
}

Tensor Fill(DType dtype, Shape shape, const std::vector<double>& values) {
  Tensor t = *Tensor::Create(dtype, std::move(shape));
  EXPECT_EQ(t.elements(), static_cast<int64_t>(values.size()));
  DispatchFixedSize(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto data = t.MutableData<T>();
    for (size_t i = 0; i < data.size(); ++i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        data[i] = T(static_cast<float>(values[i]));
      } else {
        data[i] = static_cast<T>(values[i]);
      }
    }
  });
  return t;
}

Tensor Random(DType dtype, Shape shape, double low, double high, uint64_t seed) {
  std::vector<double> values(static_cast<size_t>(Elements(shape)));
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
  bool whole = !kFloating.Contains(dtype);
  if (whole && kUnsigned.Contains(dtype)) low = std::max(low, 0.0);
  for (double& v : values) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    v = low + (high - low) * (static_cast<double>(state >> 11) * 0x1p-53);
    if (whole) v = std::floor(v + 0.5);
    if (dtype == DType::kBool) v = (state >> 20) & 1;
  }
  return Fill(dtype, std::move(shape), values);
}

Tensor Integers(std::vector<int64_t> values) { return Tensor::Vector<int64_t>(values); }

Attributes With(std::initializer_list<std::pair<const char*, AttributeValue>> list) {
  Attributes a;
  for (const auto& [name, value] : list) a.Set(name, value);
  return a;
}

Case OneNode(std::string op, std::vector<Tensor> inputs, Attributes attrs, std::vector<int> constants, int outputs,
             std::string domain) {
  Case c;
  c.name = op;
  Node node;
  node.op = op;
  node.domain = std::move(domain);
  node.name = "node";
  node.version = 24;
  node.attrs = std::move(attrs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      node.inputs.push_back(kNone);
      continue;
    }
    bool constant = std::find(constants.begin(), constants.end(), static_cast<int>(i)) != constants.end();
    std::string name = "x" + std::to_string(i);
    if (constant) {
      node.inputs.push_back(c.graph.AddConstant(name, inputs[i]));
    } else {
      node.inputs.push_back(c.graph.AddInput(name, {inputs[i].dtype(), true, inputs[i].shape(), {}}));
      c.inputs.push_back(inputs[i]);
    }
  }
  for (int i = 0; i < outputs; ++i) {
    node.outputs.push_back(c.graph.AddTemporary("y"));
    c.graph.outputs().push_back(node.outputs.back());
  }
  c.graph.AddNode(std::move(node));
  return c;
}

}  // namespace mge::testing
