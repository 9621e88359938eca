// SPDX-License-Identifier: Apache-2.0
// DepthToSpace and SpaceToDepth.
#include "support/move_rule.h"

namespace mge::cpu {
namespace {

// Both operators copy over (n, c, block row, block column, h, w), where c are the channels of the wide tensor.
Result Build(MoveBuild& b, bool to_space) {
  Node n = b.node();
  Value deep = to_space ? n.input(0) : n.output(0), wide = to_space ? n.output(0) : n.input(0);
  int64_t block = n.Int("blocksize");
  if (deep.rank() != 4 || block <= 0) return Refusal("needs four dimensions and a positive blocksize");
  bool column_first = n.Word("mode") == "DCR";  // depth = (row, column, channel)
  int64_t channels = wide.dim(1);
  std::vector<int64_t> d = to_space ? b.InputStrides(0) : b.OutputStrides(),
                       w = to_space ? b.OutputStrides() : b.InputStrides(0);
  int64_t row = column_first ? block * channels : block, column = column_first ? channels : 1,
          channel = column_first ? 1 : block * block;
  std::vector<int64_t> dims = {deep.dim(0), channels, block, block, deep.dim(2), deep.dim(3)};
  std::vector<int64_t> deep_strides = {d[0], d[1] * channel, d[1] * row, d[1] * column, d[2], d[3]};
  std::vector<int64_t> wide_strides = {w[0], w[1], w[2], w[3], w[2] * block, w[3] * block};
  Copy copy = {.input = b.Input(0),
               .output = b.Output(),
               .dims = dims,
               .from_strides = to_space ? deep_strides : wide_strides,
               .to_strides = to_space ? wide_strides : deep_strides};
  return b.Add(copy) ? Result() : TooManyDimensions();
}

Result BuildDepthToSpace(MoveBuild& b) { return Build(b, true); }
Result BuildSpaceToDepth(MoveBuild& b) { return Build(b, false); }

constexpr MoveRule kToSpace = {.id = "cpu.depth_to_space", .build = BuildDepthToSpace, .channels_last = true};
constexpr MoveRule kToDepth = {.id = "cpu.space_to_depth", .build = BuildSpaceToDepth, .channels_last = true};
constexpr KernelRow kRows[] = {Row<MoveRow<kToSpace>>("DepthToSpace"), Row<MoveRow<kToDepth>>("SpaceToDepth")};

}  // namespace

MGE_KERNELS(depth_space) = kRows;

}  // namespace mge::cpu
