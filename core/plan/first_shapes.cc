// SPDX-License-Identifier: Apache-2.0
#include "core/plan/first_shapes.h"

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {

absl::Status FirstShapes::CheckLocked(const Graph& graph, std::span<const InputType> inputs) const {
  for (size_t i = 0; shapes_ && i < inputs.size(); ++i) {
    const Shape& first = (*shapes_)[i];
    if (inputs[i].kind != ValueKind::kTensor || inputs[i].shape == first) continue;
    const std::string& name = graph.value(graph.inputs()[i]).name;
    return Fail(errors::kBadInput, fmt::format("input '{}' does not have the shape of the first run", name),
                {.what = fmt::format("its shape is {}; plan.static_input_shape allows only {}", ShapeText(inputs[i].shape),
                                     ShapeText(first)),
                 .where = fmt::format("input '{}'", name),
                 .fix = "pass the first shape, or set plan.static_input_shape = 0 (MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE)"});
  }
  return absl::OkStatus();
}

absl::Status FirstShapes::Check(const Graph& graph, std::span<const InputType> inputs) const {
  std::lock_guard lock(mutex_);
  return CheckLocked(graph, inputs);
}

absl::Status FirstShapes::Keep(const Graph& graph, std::span<const InputType> inputs) {
  std::lock_guard lock(mutex_);
  if (shapes_) return CheckLocked(graph, inputs);
  shapes_.emplace();
  for (const InputType& input : inputs) shapes_->push_back(input.shape);
  return absl::OkStatus();
}

}  // namespace mge
