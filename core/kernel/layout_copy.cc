// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/layout_copy.h"

#include <cstring>
#include <vector>

namespace mge {
namespace {

// Calls f(index of an element in the plain tensor, its index in the layout) for all elements.
template <typename F>
void ForEachElement(const Shape& dims, const mge_layout& layout, F&& f) {
  const size_t rank = dims.size();
  // The order in memory, outermost first: the permuted dimensions, each divided by its blocks; then the blocks.
  std::vector<int64_t> outer_stride(rank), block_stride(static_cast<size_t>(layout.block_count));
  std::vector<int64_t> block_of(rank, 1);
  int64_t stride = 1;
  for (int i = layout.block_count; i-- > 0;) {
    block_stride[static_cast<size_t>(i)] = stride;
    stride *= layout.block_size[i];
    block_of[static_cast<size_t>(layout.block_axis[i])] *= layout.block_size[i];
  }
  for (int i = layout.rank; i-- > 0;) {
    const auto axis = static_cast<size_t>(layout.perm[i]);
    outer_stride[axis] = stride;
    stride *= (dims[axis] + block_of[axis] - 1) / block_of[axis];
  }
  std::vector<int64_t> at(rank, 0), rest(rank);
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  for (int64_t plain = 0; plain < count; ++plain) {
    int64_t laid = 0;
    rest = at;
    for (size_t axis = 0; axis < rank; ++axis) laid += at[axis] / block_of[axis] * outer_stride[axis];
    for (int i = layout.block_count; i-- > 0;) {
      const auto axis = static_cast<size_t>(layout.block_axis[i]);
      laid += rest[axis] % layout.block_size[i] * block_stride[static_cast<size_t>(i)];
      rest[axis] /= layout.block_size[i];
    }
    f(plain, laid);
    for (size_t axis = rank; axis-- > 0;) {
      if (++at[axis] < dims[axis]) break;
      at[axis] = 0;
    }
  }
}

bool IsRowMajor(const mge_layout& layout) { return layout.kind != MGE_LAYOUT_PERMUTED; }

}  // namespace

void CopyToLayout(const Tensor& plain, const mge_layout& layout, std::span<std::byte> laid) {
  if (laid.empty()) return;
  if (IsRowMajor(layout)) {
    std::memcpy(laid.data(), plain.data(), laid.size());
    return;
  }
  std::memset(laid.data(), 0, laid.size());
  const auto size = static_cast<size_t>(ElementBytes(plain.dtype()));
  const auto* from = static_cast<const std::byte*>(plain.data());
  ForEachElement(plain.shape(), layout, [&](int64_t p, int64_t l) {
    std::memcpy(laid.data() + static_cast<size_t>(l) * size, from + static_cast<size_t>(p) * size, size);
  });
}

void CopyFromLayout(std::span<const std::byte> laid, const mge_layout& layout, Tensor& plain) {
  if (plain.bytes() == 0) return;
  auto* to = static_cast<std::byte*>(plain.mutable_data());
  if (IsRowMajor(layout)) {
    std::memcpy(to, laid.data(), static_cast<size_t>(plain.bytes()));
    return;
  }
  const auto size = static_cast<size_t>(ElementBytes(plain.dtype()));
  ForEachElement(plain.shape(), layout, [&](int64_t p, int64_t l) {
    std::memcpy(to + static_cast<size_t>(p) * size, laid.data() + static_cast<size_t>(l) * size, size);
  });
}

}  // namespace mge
