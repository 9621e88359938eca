// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/moves.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/support/broadcast.h"

namespace mge::gpu {
namespace {

// Returns whether the collapsed copy transposes dense matrices, and sets (batch, rows, columns).
bool IsTranspose(const std::vector<int64_t>& dims, const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                 TransposeArgs* args) {
  size_t rank = dims.size();
  if (rank != 2 && rank != 3) return false;
  int64_t rows = dims[rank - 1], columns = dims[rank - 2];  // of the source: the target's innermost dimension is its rows
  if (to[rank - 1] != 1 || to[rank - 2] != rows || from[rank - 2] != 1 || from[rank - 1] != columns) return false;
  if (rank == 3 && (to[0] != rows * columns || from[0] != rows * columns)) return false;
  if (rows < 8 || columns < 8) return false;  // a tile would be mostly empty
  *args = {nullptr, nullptr, rank == 3 ? dims[0] : 1, rows, columns};
  return true;
}

}  // namespace

bool AddMove(Recipe& recipe, Copy copy, uint64_t element_bytes) {
  int64_t n = 1;
  for (int64_t d : copy.dims) n *= d;
  if (n == 0) return true;
  std::vector<size_t> order(copy.dims.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t d) { return std::abs(copy.to_strides[d]); });
  copy.dims = InOrder<int64_t>(order, copy.dims);
  std::vector<std::vector<int64_t>> strides = {InOrder<int64_t>(order, copy.from_strides),
                                               InOrder<int64_t>(order, copy.to_strides)};
  Collapse(copy.dims, strides);
  const auto &from = strides[0], &to = strides[1];
  auto size = static_cast<int64_t>(element_bytes);
  Operand x = Operand::In(copy.input, copy.from_offset * size), y = Operand::Out(copy.output, copy.to_offset * size);
  if (copy.dims.size() == 1 && (n == 1 || (from[0] == 1 && to[0] == 1))) {
    recipe.AddCopy(y, x, static_cast<uint64_t>(n * size));
    return true;
  }
  std::string suffix = "_" + std::to_string(element_bytes);
  TransposeArgs transpose;
  if (IsTranspose(copy.dims, from, to, &transpose)) {
    int64_t tiles = transpose.batch * transpose.down.value * transpose.across.value;
    recipe.Add("transpose" + suffix, Rows(tiles), transpose, {x, y});
    return true;
  }
  if (copy.dims.size() > kMaxCopyDims) return false;
  CopyArgs args = {};
  args.n = n;
  args.rank = static_cast<int32_t>(copy.dims.size());
  for (size_t d = 0; d < copy.dims.size(); ++d) {
    args.dims[d] = copy.dims[d];
    args.x_strides[d] = from[d];
    args.y_strides[d] = to[d];
  }
  recipe.Add("copy" + suffix, Spread(n), args, {x, y});
  return true;
}

}  // namespace mge::gpu
