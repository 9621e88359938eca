// SPDX-License-Identifier: Apache-2.0
// The gradients of two models in the order in which a backward pass computes them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace mge::simulated {

struct Layer {
  int64_t parameters;
  double work;  // part of the time of the backward pass
};

struct ModelShape {
  std::string_view name;
  double forward;  // part of a step's time
  std::vector<Layer> layers;
};

// Sizes: torchvision's resnet50 and bert-base-uncased. Work: in proportion to the multiplications of each stage.
inline ModelShape ResNet50() {
  return {"ResNet-50",
          1.0 / 3,
          {{2'049'000, .01},
           {4'462'592, .07},
           {4'462'592, .07},
           {6'039'552, .09},
           {1'117'184, .06},
           {1'117'184, .06},
           {1'117'184, .06},
           {1'117'184, .06},
           {1'117'184, .06},
           {1'512'448, .08},
           {280'064, .06},
           {280'064, .06},
           {280'064, .06},
           {379'392, .08},
           {70'400, .03},
           {70'400, .03},
           {75'008, .03},
           {9'536, .03}}};
}
// The embeddings come last, and have hardly any work.
inline ModelShape BertBase() {
  ModelShape out = {"BERT-base", 1.0 / 3, {{590'592, .01}}};
  for (int layer = 0; layer < 12; ++layer) out.layers.insert(out.layers.end(), {{4'723'968, .055}, {2'363'904, .0275}});
  out.layers.push_back({23'837'184, 0});
  return out;
}

// Joins layers to buckets of at least so many parameters, as core/kvstore/bucketed_sum.h does.
inline std::vector<Layer> Buckets(const std::vector<Layer>& layers, int64_t min_parameters) {
  std::vector<Layer> out;
  for (const Layer& layer : layers) {
    if (out.empty() || out.back().parameters >= min_parameters) out.push_back({0, 0});
    out.back().parameters += layer.parameters;
    out.back().work += layer.work;
  }
  return out;
}

}  // namespace mge::simulated
