// SPDX-License-Identifier: Apache-2.0
// Slice with constant bounds.
#include "mge/plugin/problems/slice.hpp"

#include "support/move_rule.h"

namespace mge::cpu {
namespace {

Result BuildSlice(MoveBuild& b) {
  std::vector<SliceAxis> parts;
  if (Result r = ReadSlice(b.node(), &parts); !r.ok()) return r;
  std::vector<int64_t> from = b.InputStrides(0);
  auto dims = b.node().output(0).dims();
  Copy copy = {.input = b.Input(0),
               .output = b.Output(),
               .dims = {dims.begin(), dims.end()},
               .from_strides = from,
               .to_strides = b.OutputStrides()};
  for (size_t d = 0; d < parts.size(); ++d) {
    copy.from_offset += parts[d].start * from[d];
    copy.from_strides[d] = from[d] * parts[d].step;
  }
  return b.Add(copy) ? Result() : TooManyDimensions();
}

constexpr MoveRule kSlice = {.id = "cpu.slice", .build = BuildSlice, .channels_last = true};
constexpr KernelRow kRows[] = {Row<MoveRow<kSlice>>("Slice")};

}  // namespace

MGE_KERNELS(slice) = kRows;

}  // namespace mge::cpu
