// SPDX-License-Identifier: Apache-2.0
// NaN passes through every kernel with an activation, a limit or a maximum.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/support/chain.h"
#include "under_test.h"

namespace mge::testing {
namespace {

constexpr float kNaN = NAN, kInf = INFINITY;

// Returns random numbers with a NaN at some elements, and both infinities.
Tensor WithNaN(Shape shape, uint64_t seed = 1) {
  Tensor t = Random(DType::kF32, std::move(shape), -1, 1, seed);
  std::span<float> x = t.MutableData<float>();
  const size_t n = x.size();
  for (const size_t i : {n / 7, n / 3, n / 2 + 1, n - 1}) x[i] = kNaN;
  x[n / 5] = kInf;
  x[n / 5 * 2] = -kInf;
  return t;
}

struct Step {
  const char* op;
  std::vector<Tensor> more = {};
  Attributes attrs = {};
};

// The activations that products and convolutions compute themselves.
std::vector<Step> Activations() {
  std::vector<Step> out;
  for (const char* op : {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Gelu"}) out.push_back({op});
  out.push_back({"Gelu", {}, With({{"approximate", std::string("tanh")}})});
  out.push_back({"Clip", {Fill(DType::kF32, {}, {-0.5}), Fill(DType::kF32, {}, {0.5})}});
  return out;
}

void CheckActivations(const Case& product, int64_t terms, const Tensor* add = nullptr) {
  OnEveryMachine([&](Backend& backend) {
    for (const Step& a : Activations()) {
      Case c = product;
      if (add) Then(c, "Add", {*add}, {}, false);
      Then(c, a.op, a.more, a.attrs);
      backend.Check(c, OfProducts(terms));
    }
  });
}

TEST(NotANumber, PassesTheActivationOfAConvolution) {
  for (const auto& [channels, outputs, group, kernel, size] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>{8, 17, 1, 3, 6}, {8, 17, 1, 1, 5}, {10, 10, 10, 3, 7}}) {
    const Shape shape = {1, channels, size, size};
    const int64_t pad = kernel / 2;
    Case c = OneNode("Conv",
                     {WithNaN(shape), Random(DType::kF32, {outputs, channels / group, kernel, kernel}, -1, 1, 2),
                      Random(DType::kF32, {outputs}, -1, 1, 3)},
                     With({{"pads", Ints{pad, pad, pad, pad}}, {"group", group}}), {1, 2});
    CheckActivations(c, channels / group * kernel * kernel);
    if (group > 1) continue;
    const Tensor add = WithNaN({1, outputs, size, size}, 5);
    CheckActivations(c, channels / group * kernel * kernel, &add);
    c.inputs[0] = Random(DType::kF32, shape, -1, 1, 4);
    CheckActivations(c, channels / group * kernel * kernel, &add);
    const Tensor finite = Random(DType::kF32, {1, outputs, size, size}, -1, 1, 6);
    c.inputs[0] = WithNaN(shape);
    CheckActivations(c, channels / group * kernel * kernel, &finite);
  }
}

TEST(NotANumber, PassesTheActivationOfAProduct) {
  for (const bool constant : {true, false}) {
    Case c = OneNode("MatMul", {WithNaN({9, 40}), Random(DType::kF32, {40, 24}, -1, 1, 2)}, {},
                     constant ? std::vector<int>{1} : std::vector<int>{});
    CheckActivations(c, 40);
    const Tensor add = WithNaN({9, 24}, 5), finite = Random(DType::kF32, {9, 24}, -1, 1, 6);
    CheckActivations(c, 40, &add);
    CheckActivations(c, 40, &finite);
  }
  CheckActivations(
      OneNode("Gemm", {WithNaN({7, 33}), Random(DType::kF32, {33, 20}, -1, 1, 2), WithNaN({20}, 3)}, {}, {1, 2}), 33);
}

TEST(NotANumber, PassesActivationsInChains) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    OnEveryMachine([&](Backend& backend) {
      for (const Step& a : Activations()) {
        if (!a.more.empty() && type != DType::kF32) continue;
        Tensor x = Random(type, {3, 41});
        DispatchFloating(type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          x.MutableData<T>()[5] = static_cast<T>(kNaN);
          x.MutableData<T>()[100] = static_cast<T>(kNaN);
        });
        std::vector<Tensor> inputs = {x};
        inputs.insert(inputs.end(), a.more.begin(), a.more.end());
        backend.Check(OneNode(a.op, inputs, a.attrs), Roughly);
        Case c = OneNode("Add", {x, Random(type, {41}, -1, 1, 2)});
        Then(c, a.op, a.more, a.attrs);
        Then(c, "Mul", {Random(type, {41}, -1, 1, 3)});
        if (!backend.Offers(c).candidates.empty()) backend.Check(c, Roughly);  // not every chain has each function
      }
    });
  }
}

TEST(NotANumber, IsTheLargestAndTheSmallestNumber) {
  OnEveryMachine([](Backend& backend) {
    const Tensor x = WithNaN({4, 65}), y = WithNaN({4, 65}, 2), finite = Random(DType::kF32, {65}, -1, 1, 3);
    for (const char* op : {"Max", "Min"}) {
      backend.Check(OneNode(op, {x, y}), Exactly);
      backend.Check(OneNode(op, {finite, x}), Exactly);
      backend.Check(OneNode(op, {x, finite}), Exactly);
      backend.Check(OneNode(op, {finite, x, y}), Exactly);
    }
    for (const char* op : {"ReduceMax", "ReduceMin"}) {
      for (int64_t axis : {0, 1}) backend.Check(OneNode(op, {x, Integers({axis})}, {}, {1}), Exactly);
    }
    backend.Check(OneNode("GlobalMaxPool", {WithNaN({2, 8, 7, 7})}), Exactly);
  });
}

TEST(NotANumber, PassesAPooling) {
  OnEveryMachine([](Backend& backend) {
    for (const char* op : {"MaxPool", "AveragePool"}) {
      for (const int64_t stride : {1, 2}) {
        for (const Shape& shape : {Shape{1, 3, 9, 11}, Shape{2, 16, 9, 10}, Shape{1, 16, 30, 1}}) {
          const int64_t width = shape[3] == 1 ? 1 : 3, side = shape[3] == 1 ? 0 : 1;
          backend.Check(OneNode(op, {WithNaN(shape)},
                                With({{"kernel_shape", Ints{3, width}},
                                      {"strides", Ints{stride, shape[3] == 1 ? 1 : stride}},
                                      {"pads", Ints{1, side, 0, side}}})),
                        Closely);
        }
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
