// SPDX-License-Identifier: Apache-2.0
// Layouts of candidates: a row offers its kernel for plain operands and, if it supports them, for operands with the channels
// last. With the channels last, the outputs and the operands of their rank have that layout. Other operands and constants
// stay plain.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::gpu {

enum class Layout : uint8_t { kPlain, kChannelsLast };

// Returns the layouts that tensors of that rank can have, the plain one first.
std::span<const Layout> LayoutsOf(int rank);

// Returns the element strides of dense memory in the layout.
std::vector<int64_t> StridesIn(Layout layout, std::span<const int64_t> dims);
// Returns the element strides of an operand of a candidate whose outputs have `rank` dimensions.
std::vector<int64_t> StridesOf(const Value& operand, int rank, Layout layout);
// Returns the dimensions from the outermost to the innermost one in memory.
std::vector<size_t> MemoryOrder(Layout layout, size_t rank);
template <typename T>
std::vector<T> InOrder(const std::vector<size_t>& order, std::span<const T> list) {
  std::vector<T> out;
  for (const size_t d : order) out.push_back(list[d]);
  return out;
}

// Set the layouts of a candidate's operands, and complete its id: "gpu.pool.nhwc". The first function sets that of all
// operands. The second one sets that of the outputs and of the given inputs (negative: absent), and returns false if one of
// these is a constant, which a kernel gets plain.
void SetLayout(const Problem& p, Layout layout, Candidate* candidate);
bool SetLayout(const Problem& p, Layout layout, std::initializer_list<int> inputs, Candidate* candidate);

}  // namespace mge::gpu
