// SPDX-License-Identifier: Apache-2.0
// Normalizations as expressions, for bodies and gradients.
#pragma once

#include "core/ops/expression.h"

namespace mge {

// Returns the axes from `first` to the last one.
inline Ints AxesFrom(int64_t first, int64_t rank) {
  Ints axes;
  for (int64_t i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

// x with mean 0 and variance 1 along some axes.
struct Normalized {
  Normalized(ExpressionBuilder& b, const Term& given, Ints over, double epsilon)
      : axes(std::move(over)),
        mean(b.Mean(given, axes)),
        centred(given - mean),
        variance(b.Mean(centred * centred, axes)),
        scale(1 / Unary("Sqrt", variance + epsilon)),
        x(centred * scale) {}

  // Returns the gradient of the given values from that of x. Mean and variance depend on the values, too.
  Term Gradient(const Term& dx) const {
    ExpressionBuilder& b = x.builder();
    return scale * (dx - b.Mean(dx, axes) - x * b.Mean(dx * x, axes));
  }

  Ints axes;
  Term mean, centred, variance, scale, x;
};

// Parameters with one element per channel, which is dimension 1 of the data.
class PerChannel {
 public:
  PerChannel(ExpressionBuilder& b, int64_t rank) : b_(b), spatial_(AxesFrom(1, rank - 1)), others_(AxesFrom(2, rank)) {
    others_.insert(others_.begin(), 0);
  }
  const Ints& others() const { return others_; }  // all axes but that of the channels
  // Returns a parameter in a shape that is broadcast to that of the data.
  Term Wide(const Term& parameter) const {
    return spatial_.empty() ? parameter : b_.Of("Unsqueeze", {parameter.id(), b_.Integers(spatial_)});
  }
  // Returns the sums of the data by channel.
  Term Sum(const Term& x) const { return b_.Of("ReduceSum", {x.id(), b_.Integers(others_)}, IntAttribute("keepdims", 0)); }

 private:
  ExpressionBuilder& b_;
  Ints spatial_, others_;
};

}  // namespace mge
