// SPDX-License-Identifier: Apache-2.0
// Transpose.
#include "kernel_table.h"
#include "support/move_rule.h"

namespace mge::cpu {
namespace {

Result BuildTranspose(MoveBuild& b) {
  Value x = b.node().input(0);
  auto rank = static_cast<size_t>(x.rank());
  auto perm = b.node().Ints("perm");
  std::vector<int64_t> from = b.InputStrides(0), walked(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t axis = perm.empty() ? static_cast<int64_t>(rank - 1 - i) : AxisOf(perm[i], x.rank());
    if (axis < 0) return Refusal("perm is outside of the rank");
    walked[i] = from[static_cast<size_t>(axis)];
  }
  auto dims = b.node().output(0).dims();
  Copy copy = {.input = b.Input(0), .output = b.Output(), .dims = {dims.begin(), dims.end()}, .from_strides = walked,
               .to_strides = b.OutputStrides()};
  return b.Add(copy) ? Result() : TooManyDimensions();
}

constexpr MoveRule kTranspose = {.id = "cpu.transpose", .build = BuildTranspose};
constexpr KernelRow kRows[] = {{"Transpose", OfferMoves<kTranspose>, MakeMoves<kTranspose>}};

}  // namespace

MGE_CPU_KERNELS(transpose) = kRows;

}  // namespace mge::cpu
