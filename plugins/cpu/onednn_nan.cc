// SPDX-License-Identifier: Apache-2.0
#include "onednn_nan.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mge::cpu::onednn {
namespace {

float Sigmoid(float x) {
  const float e = std::exp(-std::abs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
float Limited(float x, float lo, float hi) { return x < lo ? lo : x > hi ? hi : x; }  // NaN stays NaN

float Activated(const Epilogue& e, float x) {
  switch (e.activation) {
    case Activation::kNone: return x;
    case Activation::kClip: return Limited(x, e.lo, e.hi);
    case Activation::kGelu: return 0.5f * x * (1 + std::erf(x * 0.707106781f));
    case Activation::kGeluTanh: return 0.5f * x * (1 + std::tanh(0.797884561f * (x + 0.044715f * x * x * x)));
    case Activation::kSigmoid: return Sigmoid(x);
    case Activation::kTanh: return std::tanh(x);
    case Activation::kHardSwish: return x * Limited(x / 6 + 0.5f, 0, 1);
    case Activation::kSwish: return x * Sigmoid(x);
    case Activation::kLeakyRelu: return x < 0 ? x * e.lo : x;
  }
  return x;
}

}  // namespace

bool AllFinite(const float* x, uint64_t count) {
  constexpr int32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  constexpr uint64_t kBlock = 4096;  // floats; the loop inside has no exit, so that it is vectorised
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    const uint64_t end = std::min(count, begin + kBlock);
    int32_t found = 0;
    for (uint64_t i = begin; i < end; ++i) found |= (std::bit_cast<int32_t>(x[i]) & kMagnitude) >= kInfinity;
    if (found) return false;
  }
  return true;
}

void Activate(const Epilogue& e, bool adds, const float* linear, float* y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] = Activated(e, adds ? y[i] + linear[i] : linear[i]);
}

void CopyNaN(const float* linear, float* y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (std::isnan(linear[i])) y[i] = linear[i];
  }
}

void PoolNaN(const PooledImages& p, const float* x, float* y) {
  const ConvWindows& w = *p.windows;
  for (int64_t image = 0; image < p.images; ++image, x += p.rows * p.columns * p.channels) {
    for (int64_t oy = p.row_begin; oy < p.row_end; ++oy) {
      for (int64_t ox = p.column_begin; ox < p.column_end; ++ox, y += p.channels) {
        for (int64_t tap = 0; tap < w.kh * w.kw; ++tap) {
          const int64_t iy = oy * w.sh - w.ph + tap / w.kw * w.dh, ix = ox * w.sw - w.pw + tap % w.kw * w.dw;
          if (iy < 0 || iy >= w.h || ix < 0 || ix >= w.w) continue;
          const int64_t pixel = (iy - p.first_row) * p.columns + ix - p.first_column;
          CopyNaN(x + pixel * p.channels, y, static_cast<uint64_t>(p.channels));
        }
      }
    }
  }
}

}  // namespace mge::cpu::onednn
