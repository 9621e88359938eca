// SPDX-License-Identifier: Apache-2.0
// Concat and Split.
#include "support/move_rule.h"

namespace mge::cpu {
namespace {

Result BuildConcat(MoveBuild& b) {
  Node n = b.node();
  int64_t axis = n.Int("axis"), at = 0;
  std::vector<int64_t> to = b.OutputStrides();
  for (int k = 0; k < n.input_count(); ++k) {
    auto dims = n.input(k).dims();
    Copy copy = {.input = b.Input(k),
                 .output = b.Output(),
                 .to_offset = at * to[static_cast<size_t>(axis)],
                 .dims = {dims.begin(), dims.end()},
                 .from_strides = b.InputStrides(k),
                 .to_strides = to};
    if (!b.Add(copy)) return TooManyDimensions();
    at += dims[static_cast<size_t>(axis)];
  }
  return {};
}

Result BuildSplit(MoveBuild& b) {
  Node n = b.node();
  int64_t axis = n.Int("axis"), at = 0;
  std::vector<int64_t> from = b.InputStrides(0);
  for (int k = 0; k < n.output_count(); ++k) {
    if (!n.has_output(k)) return Refusal("an output is absent");
    auto dims = n.output(k).dims();
    Copy copy = {.input = b.Input(0),
                 .output = b.Output(k),
                 .from_offset = at * from[static_cast<size_t>(axis)],
                 .dims = {dims.begin(), dims.end()},
                 .from_strides = from,
                 .to_strides = b.OutputStrides(k)};
    if (!b.Add(copy)) return TooManyDimensions();
    at += dims[static_cast<size_t>(axis)];
  }
  return {};
}

constexpr MoveRule kConcat = {.id = "cpu.concat", .build = BuildConcat, .channels_last = true, .data_inputs = -1};
constexpr MoveRule kSplit = {.id = "cpu.split", .build = BuildSplit, .channels_last = true};
constexpr KernelRow kRows[] = {Row<MoveRow<kConcat>>("Concat"), Row<MoveRow<kSplit>>("Split")};

}  // namespace

MGE_KERNELS(concat) = kRows;

}  // namespace mge::cpu
