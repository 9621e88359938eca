// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/packing.h"

#include <algorithm>

#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/support/recipe.h"

namespace mge::gpu {
namespace {

template <typename T>
void Transpose(const Packing& p, const void* from, void* to) {
  constexpr int64_t kTile = 32;  // keeps both sides in the cache
  auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  for (int64_t b = 0; b < p.batch; ++b, x += p.rows * p.columns, y += p.rows * p.columns) {
    for (int64_t r0 = 0; r0 < p.rows; r0 += kTile) {
      for (int64_t c = 0; c < p.columns; ++c) {
        for (int64_t r = r0; r < std::min(p.rows, r0 + kTile); ++r) y[c * p.rows + r] = x[r * p.columns + c];
      }
    }
  }
}

}  // namespace

std::string Packing::Form() const {
  return "transposed " + std::to_string(batch) + "x" + std::to_string(rows) + "x" + std::to_string(columns) + " of " +
         std::to_string(element_bytes) + " bytes";
}

Result Packing::OnHost(const void* from, void* to) const {
  switch (element_bytes) {
    case 1: Transpose<uint8_t>(*this, from, to); break;
    case 2: Transpose<uint16_t>(*this, from, to); break;
    case 4: Transpose<uint32_t>(*this, from, to); break;
    default: Transpose<uint64_t>(*this, from, to);
  }
  return {};
}

Result Packing::OnQueue(mge_queue* queue, const void* from, void* to) const {
  const TransposeArgs args = {from, to, batch, rows, columns};
  const Shape3 shape = Rows(batch * ((rows + 31) / 32) * ((columns + 31) / 32));
  Launch launch = {};
  launch.kernel = FindKernel("transpose_" + std::to_string(element_bytes));
  if (launch.kernel == kNoKernel) return {MGE_UNIMPLEMENTED, "the backend's image has no kernel that transposes"};
  std::copy_n(shape.grid, 3, launch.grid);
  std::copy_n(shape.block, 3, launch.block);
  launch.args = &args;
  launch.args_bytes = sizeof(args);
  return EnqueueOn(queue, launch);
}

}  // namespace mge::gpu
