// SPDX-License-Identifier: Apache-2.0
#include "core/cli/zoo/architectures.h"

#include <cmath>

#include "core/cli/zoo/model_writer.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// Writes 200 unary operators on 16 numbers, to measure the overhead of a call and of a step.
std::string WriteTinyOps(const ModelRequest& r) {
  static constexpr const char* kOps[] = {"Relu", "Sigmoid", "Tanh", "Abs", "Neg"};
  ModelWriter m("tiny-ops", r);
  std::string x = m.Input("x", {16});
  for (int i = 0; i < 200; ++i) x = m.Node(kOps[i % 5], {x}, {}, i == 199 ? "y" : "");
  m.Output("y", {16});
  return m.Finish();
}

// Writes 100 pairs of a small matrix product and a softmax over the first dimension.
std::string WriteTinyMixed(const ModelRequest& r) {
  ModelWriter m("tiny-mixed", r);
  std::string x = m.Input("x", {16, 16});
  for (int i = 0; i < 100; ++i) {
    x = m.Node("MatMul", {x, m.Weight(fmt::format("w{}", i), {16, 16}, 0.25f)});
    x = m.Node("Softmax", {x}, {{"axis", int64_t{0}}}, i == 99 ? "y" : "");
  }
  m.Output("y", {16, 16});
  return m.Finish();
}

std::string WriteOneOp(const ModelRequest& r) {
  ModelWriter m("one-op", r);
  m.Node("Relu", {m.Input("x", {16})}, {}, "y");
  m.Output("y", {16});
  return m.Finish();
}

// Writes ten elementwise operators on a million numbers, to measure the gain of fusion.
std::string WriteEltwiseChain(const ModelRequest& r) {
  constexpr int64_t kElements = 1 << 20;
  ModelWriter m("eltwise-chain", r);
  std::string x = m.Input("x", {kElements}), b = m.Input("b", {kElements});
  std::string y = m.Node("Mul", {x, m.Scalar("scale", 0.5f)});
  y = m.Node("Add", {y, b});
  y = m.Node("Relu", {y});
  y = m.Node("Sub", {y, m.Scalar("shift", 0.1f)});
  y = m.Node("Abs", {y});
  y = m.Node("Mul", {y, x});
  y = m.Node("Neg", {y});
  y = m.Node("Add", {y, m.Scalar("one", 1.0f)});
  y = m.Node("Mul", {y, y});
  m.Node("Sqrt", {y}, {}, "y");
  m.Output("y", {kElements});
  return m.Finish();
}

// Writes one operator that reads and writes `batch` million numbers, to measure the rate of a device's memory.
std::string WriteStream(const ModelRequest& r) {
  ModelWriter m("stream", r);
  m.Node("Relu", {m.Input("x", {r.batch, 1 << 20})}, {}, "y");
  m.Output("y", {r.batch, 1 << 20});
  return m.Finish();
}

// Writes products of `batch` x kSize with kSize x kSize, one after the other, to measure the rate of products.
std::string WriteProducts(const ModelRequest& r) {
  constexpr int64_t kSize = 2048;
  constexpr int kProducts = 8;
  ModelWriter m("products", r);
  std::string x = m.Input("x", {r.batch, kSize});
  const std::string w = m.Weight("w", {kSize, kSize}, 1 / std::sqrt(float{kSize}));
  for (int i = 0; i < kProducts; ++i) x = m.Node("MatMul", {x, w}, {}, i == kProducts - 1 ? "y" : "");
  m.Output("y", {r.batch, kSize});
  return m.Finish();
}

constexpr Architecture kArchitectures[] = {
    {"resnet50", "ResNet-50 (version 1.5), 224x224", WriteResNet50, true},
    {"mobilenetv2", "MobileNetV2 1.0, 224x224", WriteMobileNetV2, true},
    {"bert-base", "BERT encoder of 12 layers of 768, 128 tokens", WriteBertBase, true},
    {"bert-tiny", "BERT encoder of 2 layers of 128, 128 tokens", WriteBertTiny, true},
    {"tiny-ops", "200 unary operators on 16 numbers", WriteTinyOps, false},
    {"tiny-mixed", "100 times MatMul 16x16 and Softmax over axis 0", WriteTinyMixed, false},
    {"one-op", "one Relu on 16 numbers", WriteOneOp, false},
    {"eltwise-chain", "10 elementwise operators on a million numbers", WriteEltwiseChain, false},
    {"stream", "one Relu on a million numbers", WriteStream, true},
    {"products", "8 products of 2048 columns with 2048x2048", WriteProducts, true},
};

}  // namespace

std::span<const Architecture> Architectures() { return kArchitectures; }

}  // namespace mge::cli
