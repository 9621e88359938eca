// SPDX-License-Identifier: Apache-2.0
// Expand and Tile: repeat elements along dimensions.
#include "support/move_rule.h"

namespace mge::cpu {
namespace {

Result BuildExpand(MoveBuild& b) {
  Node n = b.node();
  Value x = n.input(0), y = n.output(0);
  auto dims = y.dims();
  std::vector<int64_t> own = StridesIn(x.dims(), false), from(dims.size(), 0);
  size_t shift = dims.size() - own.size();
  for (size_t d = 0; d < own.size(); ++d) {
    if (x.dims()[d] != 1) from[d + shift] = own[d];
  }
  Copy copy = {.input = b.Input(0),
               .output = b.Output(),
               .dims = {dims.begin(), dims.end()},
               .from_strides = from,
               .to_strides = b.OutputStrides()};
  return b.Add(copy) ? Result() : TooManyDimensions();
}

// Splits every dimension into (repeat, position).
Result BuildTile(MoveBuild& b) {
  Node n = b.node();
  Value x = n.input(0), y = n.output(0);
  std::vector<int64_t> from = b.InputStrides(0), to = b.OutputStrides();
  Copy copy = {.input = b.Input(0), .output = b.Output()};
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t size = x.dims()[d], repeats = size ? y.dims()[d] / size : 0;
    for (auto [count, source, target] : {std::tuple{repeats, int64_t{0}, to[d] * size}, std::tuple{size, from[d], to[d]}}) {
      copy.dims.push_back(count);
      copy.from_strides.push_back(source);
      copy.to_strides.push_back(target);
    }
  }
  return b.Add(copy) ? Result() : TooManyDimensions();
}

constexpr MoveRule kExpand = {.id = "cpu.expand", .build = BuildExpand};
constexpr MoveRule kTile = {.id = "cpu.tile", .build = BuildTile, .channels_last = true};
constexpr KernelRow kRows[] = {Row<MoveRow<kExpand>>("Expand"), Row<MoveRow<kTile>>("Tile")};

}  // namespace

MGE_KERNELS(expand) = kRows;

}  // namespace mge::cpu
