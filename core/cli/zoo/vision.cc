// SPDX-License-Identifier: Apache-2.0
// ResNet-50 (K. He et al., 2015, stride in the 3x3 convolution) and MobileNetV2 (M. Sandler et al., 2018).
#include <cmath>

#include "core/cli/zoo/architectures.h"
#include "core/cli/zoo/model_writer.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// Adds a convolution and a batch normalisation. The random weights preserve the variance of the activations. `gain` scales
// the result; a small gain is used at the end of a residual block's branch.
std::string ConvNorm(ModelWriter& m, const std::string& x, const std::string& name, int64_t in, int64_t out, int64_t kernel,
                     int64_t stride, int64_t groups = 1, float gain = 1.0f) {
  int64_t pad = kernel / 2;
  float deviation = std::sqrt(2.0f / static_cast<float>(in / groups * kernel * kernel));
  std::string w = m.Weight(name + ".w", {out, in / groups, kernel, kernel}, deviation);
  std::string y = m.Node("Conv", {x, w},
                         {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                          {"strides", std::vector<int64_t>{stride, stride}},
                          {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                          {"dilations", std::vector<int64_t>{1, 1}},
                          {"group", groups}});
  return m.Node("BatchNormalization",
                {y, m.Weight(name + ".scale", {out}, 0.05f, gain), m.Weight(name + ".bias", {out}, 0.05f),
                 m.Weight(name + ".mean", {out}, 0.05f), m.Weight(name + ".var", {out}, 0, 1.0f)},
                {{"epsilon", 1e-5f}});
}

void Classify(ModelWriter& m, const std::string& x, int64_t channels, int64_t batch) {
  std::string y = m.Node("Flatten", {m.Node("GlobalAveragePool", {x})}, {{"axis", int64_t{1}}});
  float deviation = 1.0f / std::sqrt(static_cast<float>(channels));
  m.Node("Gemm", {y, m.Weight("fc.w", {1000, channels}, deviation), m.Weight("fc.b", {1000}, 0.01f)},
         {{"transB", int64_t{1}}}, "logits");
  m.Output("logits", {batch, 1000});
}

}  // namespace

std::string WriteResNet50(const ModelRequest& r) {
  ModelWriter m("resnet50", r);
  std::string x = m.Input("image", {r.batch, 3, 224, 224});
  x = m.Node("Relu", {ConvNorm(m, x, "stem", 3, 64, 7, 2)});
  x = m.Node("MaxPool", {x},
             {{"kernel_shape", std::vector<int64_t>{3, 3}},
              {"strides", std::vector<int64_t>{2, 2}},
              {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  int64_t in = 64;
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    int64_t width = int64_t{64} << stage, out = width * 4;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      std::string name = fmt::format("layer{}.{}", stage + 1, block);
      std::string y = m.Node("Relu", {ConvNorm(m, x, name + ".conv1", in, width, 1, 1)});
      y = m.Node("Relu", {ConvNorm(m, y, name + ".conv2", width, width, 3, stride)});
      y = ConvNorm(m, y, name + ".conv3", width, out, 1, 1, 1, 0.25f);
      std::string shortcut = block == 0 ? ConvNorm(m, x, name + ".down", in, out, 1, stride) : x;
      x = m.Node("Relu", {m.Node("Add", {y, shortcut})});
      in = out;
    }
  }
  Classify(m, x, 2048, r.batch);
  return m.Finish();
}

std::string WriteMobileNetV2(const ModelRequest& r) {
  struct Stage {
    int64_t expand, channels, repeat, stride;
  };
  static constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  ModelWriter m("mobilenetv2", r);
  std::string low = m.Scalar("zero", 0.0f), high = m.Scalar("six", 6.0f);
  auto relu6 = [&](const std::string& v) { return m.Node("Clip", {v, low, high}); };
  std::string x = relu6(ConvNorm(m, m.Input("image", {r.batch, 3, 224, 224}), "stem", 3, 32, 3, 2));
  int64_t in = 32;
  int block = 0;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.repeat; ++i, ++block) {
      std::string name = fmt::format("block{}", block);
      int64_t stride = i == 0 ? stage.stride : 1, hidden = in * stage.expand;
      std::string y = x;
      if (stage.expand != 1) y = relu6(ConvNorm(m, y, name + ".expand", in, hidden, 1, 1));
      y = relu6(ConvNorm(m, y, name + ".depthwise", hidden, hidden, 3, stride, hidden));
      y = ConvNorm(m, y, name + ".project", hidden, stage.channels, 1, 1, 1, 0.5f);
      x = stride == 1 && in == stage.channels ? m.Node("Add", {x, y}) : y;
      in = stage.channels;
    }
  }
  x = relu6(ConvNorm(m, x, "head", in, 1280, 1, 1));
  Classify(m, x, 1280, r.batch);
  return m.Finish();
}

}  // namespace mge::cli
