// SPDX-License-Identifier: Apache-2.0
// Slice with constant bounds.
#include "support/move_rule.h"

namespace mge::cpu {
namespace {

Result BuildSlice(MoveBuild& b) {
  Node n = b.node();
  Value x = n.input(0);
  std::vector<int64_t> starts, axes, steps;
  if (!ConstantInts(n, 1, starts)) return Refusal("starts are not constant");
  if (n.has_input(3)) {
    if (!ConstantInts(n, 3, axes)) return Refusal("axes are not constant");
  } else {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (n.has_input(4)) {
    if (!ConstantInts(n, 4, steps)) return Refusal("steps are not constant");
  } else {
    steps.assign(starts.size(), 1);
  }
  if (axes.size() != starts.size() || steps.size() != starts.size()) return Refusal("bounds of different lengths");
  std::vector<int64_t> from = b.InputStrides(0);
  auto dims = n.output(0).dims();
  Copy copy = {.input = b.Input(0),
               .output = b.Output(),
               .dims = {dims.begin(), dims.end()},
               .from_strides = from,
               .to_strides = b.OutputStrides()};
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = AxisOf(axes[i], x.rank());
    if (axis < 0 || steps[i] == 0) return Refusal("an axis or step is not valid");
    auto d = static_cast<size_t>(axis);
    if (dims[d] == 0) continue;
    int64_t size = x.dims()[d], start = starts[i] < 0 ? starts[i] + size : starts[i];
    start = std::clamp<int64_t>(start, 0, steps[i] > 0 ? size : size - 1);
    if (start + (dims[d] - 1) * steps[i] < 0 || start + (dims[d] - 1) * steps[i] >= size) {
      return Refusal("the output's shape does not follow from the bounds");
    }
    copy.from_offset += start * from[d];
    copy.from_strides[d] = from[d] * steps[i];
  }
  return b.Add(copy) ? Result() : TooManyDimensions();
}

constexpr MoveRule kSlice = {.id = "cpu.slice", .build = BuildSlice, .channels_last = true};
constexpr KernelRow kRows[] = {Row<MoveRow<kSlice>>("Slice")};

}  // namespace

MGE_KERNELS(slice) = kRows;

}  // namespace mge::cpu
