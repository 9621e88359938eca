// SPDX-License-Identifier: Apache-2.0
// What every row does: judge the plain facts of a problem, name types, find operands, estimate a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::gpu {

inline constexpr uint64_t kExact = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT | MGE_KERNEL_CAPTURE_SAFE;
inline constexpr int kMaxRank = 8;

// Refuses, and answers false, unless all shapes are known, all outputs are plainly written, all types are ours, no
// operand has more than kMaxRank dimensions, and the problem is one node (any number if `groups`).
bool Accept(const Problem& p, Offers& offers, bool groups = false);

// A node that the host could not bring into the newest form: attributes that begin with '_' say how its old operator
// set differs.
bool HasOwnMeaning(const Node& node);

inline bool IsFloating(mge_dtype t) {
  return t == MGE_DTYPE_F32 || t == MGE_DTYPE_F64 || t == MGE_DTYPE_F16 || t == MGE_DTYPE_BF16;
}
inline bool IsInteger(mge_dtype t) {
  return (t >= MGE_DTYPE_U8 && t <= MGE_DTYPE_I64) || t == MGE_DTYPE_U32 || t == MGE_DTYPE_U64;
}
inline bool IsSupported(mge_dtype t) { return IsFloating(t) || IsInteger(t) || t == MGE_DTYPE_BOOL; }

// The end of a kernel's name for an element type: "f32". Empty for a type that is not ours.
std::string_view TypeSuffix(mge_dtype t);
// "float32".
std::string_view TypeName(mge_dtype t);
// base + "_" + suffix.
std::string KernelFor(std::string_view base, mge_dtype t);

// An axis attribute counted from the front; -1 if it is outside of the rank.
inline int64_t AxisOf(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? axis : -1;
}

// Integers of a constant operand (int32 or int64) of the node. False if the operand is absent or not constant.
bool ConstantInts(const Node& node, int input, std::vector<int64_t>& out);

// The dimensions round an axis: `outer` blocks of n by inner elements.
struct Extent {
  int64_t outer = 1, n = 1, inner = 1;
};
Extent ExtentOf(const Value& v, int64_t axis);

// Element strides of plain memory.
std::vector<int64_t> StridesOf(std::span<const int64_t> dims);

// Numbers among the problem's operands of input or output k of node i.
inline int InputOf(const Problem& p, int k, int i = 0) { return p.operand(i, k); }
int OutputOf(const Problem& p, int k = 0, int i = 0);

// Estimate for launches that move so many bytes and compute so many operations, on a middling device.
double GpuUs(double bytes, double operations = 0, int launches = 1);
double BytesOf(const Problem& p);  // of all operands

}  // namespace mge::gpu
