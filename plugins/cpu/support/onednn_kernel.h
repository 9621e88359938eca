// SPDX-License-Identifier: Apache-2.0
// A kernel of oneDNN primitives: one for every thread, each on a slice of the rows. And when oneDNN is offered at all.
#pragma once

#include <algorithm>
#include <vector>

#include "mge/plugin.hpp"
#include "onednn.h"

namespace mge::cpu {

// May take heap memory while it runs; its code is compiled for the thread count and the machine.
inline constexpr uint64_t kOnednnAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_ALLOCATES;
inline constexpr int kOnednnRank = 20;

struct OnednnSlice {
  onednn::PrimitivePtr primitive;
  uint64_t x = 0, y = 0;  // bytes from the operands' beginnings
  uint64_t scratch = 0;   // in the workspace
};

// Where a problem's operands are; -1: there is none.
struct OnednnPlaces {
  int x = -1, weights = -1, bias = -1, add = -1;
  uint64_t y_bytes = 0;
};

// Null if the slices need more workspace than the candidate promised.
KernelPtr MakeOnednnKernel(const OnednnPlaces& places, std::vector<OnednnSlice> slices, const Candidate& candidate);

// Refuses, and answers false, where oneDNN may not or cannot serve.
bool OnednnUsable(Offers& offers, double serial_us);

// Into how many slices work of that length is cut at most.
int64_t OnednnWays(const Problem& p, double serial_us);
double OnednnCostUs(double serial_us, int64_t ways);

// More than any of its algorithms asks for: copies of the operands, padded, and some.
uint64_t OnednnWorkspaceBound(const Problem& p, int64_t ways);

// NHWC images under windows, and how they are cut: several images apart, one image by its rows.
struct OnednnImages {
  int64_t images = 0, channels = 0, outputs = 0;
  ConvWindows windows = {};

  int64_t Ways(int64_t most) const { return images == 1 ? std::min(most, windows.oh) : images >= most ? most : 1; }
};

// make(images, y0, y1, first, &primitive) -> Result makes the primitive of a slice; `first` is that of the first slice, or null.
// Empty if one cannot be made.
template <typename F>
std::vector<OnednnSlice> CutImages(const OnednnImages& all, int64_t ways, F&& make) {
  const ConvWindows& w = all.windows;
  auto in_row = static_cast<uint64_t>(w.w * all.channels) * sizeof(float), out_row = static_cast<uint64_t>(w.ow * all.outputs) * sizeof(float);
  std::vector<OnednnSlice> slices;
  for (int64_t i = 0; i < ways; ++i) {
    const onednn::Primitive* first = slices.empty() ? nullptr : slices[0].primitive.get();
    OnednnSlice s;
    int64_t n0 = 0, n1 = 1, y0 = 0, y1 = w.oh, x0 = 0;
    if (all.images == 1) {
      y0 = w.oh * i / ways;
      y1 = w.oh * (i + 1) / ways;
      x0 = onednn::FirstInputRow(w, y0);
    } else {
      n0 = all.images * i / ways;
      n1 = all.images * (i + 1) / ways;
    }
    if (!make(n1 - n0, y0, y1, first, &s.primitive).ok()) return {};
    s.x = static_cast<uint64_t>(n0 * w.h + x0) * in_row;
    s.y = static_cast<uint64_t>(n0 * w.oh + y0) * out_row;
    slices.push_back(std::move(s));
  }
  return slices;
}

}  // namespace mge::cpu
