// SPDX-License-Identifier: Apache-2.0
// Helpers for the gradients of reductions: the output and its gradient, with the reduced dimensions kept as 1.
#pragma once

#include <vector>

#include "core/ops/gradient.h"

namespace mge {

class Reduced {
 public:
  explicit Reduced(GradientContext& g) : g_(g) {}

  Term y() const { return Kept(g_.y()); }
  Term dy() const { return Kept(g_.dy()); }
  Term Spread(const Term& x) const { return g_.Of("Expand", {x.id(), g_.ShapeOf(g_.x())}); }
  // Returns the number of elements that one sum adds.
  Term Count() const { return g_.CastTo(Unary("Size", g_.x()), g_.dtype()) / g_.CastTo(Unary("Size", g_.dy()), g_.dtype()); }
  // Divides the gradient among the elements that are equal to the result, for maxima and minima.
  Term Share() const {
    const Term result = y(), equal = g_.CastTo(Binary("Equal", g_.x(), result), g_.dtype());
    return equal * (dy() / g_.SumTo(equal, result));
  }

 private:
  // The shape is that of a sum that keeps the dimensions. The planner removes the sum when its shape is known.
  Term Kept(const Term& x) const {
    if (g_.attrs().Int("keepdims") != 0) return x;
    std::vector<ValueId> inputs = {g_.x().id()};
    if (g_.has_input(1)) inputs.push_back(g_.x(1).id());
    const int64_t no_axes_is_none = g_.attrs().Int("noop_with_empty_axes");
    return g_.ReshapeLike(x, g_.Of("ReduceSum", inputs, IntAttribute("noop_with_empty_axes", no_axes_is_none)));
  }

  GradientContext& g_;
};

}  // namespace mge
