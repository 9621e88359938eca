// SPDX-License-Identifier: Apache-2.0
// Helpers for rows: check a problem, name types, find operands, estimate times.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mge/plugin.hpp"
#include "mge/plugin/problems/operands.hpp"
#include "plugins/gpu/roofs.h"
#include "plugins/gpu/support/layout.h"

namespace mge::gpu {

// Attributes of every kernel of this folder. A launch copies the arguments.
inline constexpr uint64_t kLaunched = MGE_KERNEL_CAPTURE_SAFE | MGE_KERNEL_READS_ARGS_FIRST;
inline constexpr uint64_t kExact = kLaunched | MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT;
inline constexpr int kMaxRank = 8;

// Returns whether rows support the problem's form; refuses it otherwise. All shapes must be known, all types must be
// supported, and no operand may have more than kMaxRank dimensions. No output may accumulate unless `adds`. The problem must
// be one node unless `groups`.
bool Accept(const Problem& p, Offers& offers, bool groups = false, bool adds = false);

inline Result Refusal(std::string why) { return {MGE_UNIMPLEMENTED, std::move(why)}; }

inline bool IsFloating(mge_dtype t) {
  return t == MGE_DTYPE_F32 || t == MGE_DTYPE_F64 || t == MGE_DTYPE_F16 || t == MGE_DTYPE_BF16;
}
inline bool IsInteger(mge_dtype t) {
  return (t >= MGE_DTYPE_U8 && t <= MGE_DTYPE_I64) || t == MGE_DTYPE_U32 || t == MGE_DTYPE_U64;
}
inline bool IsSupported(mge_dtype t) { return IsFloating(t) || IsInteger(t) || t == MGE_DTYPE_BOOL; }

// Returns the suffix of a kernel's name for an element type, such as "f32"; empty for an unsupported type.
std::string_view TypeSuffix(mge_dtype t);
// Returns, for example, "float32".
std::string_view TypeName(mge_dtype t);
// Returns base + "_" + suffix.
std::string KernelFor(std::string_view base, mge_dtype t);

// Reads a constant of one element. Returns false for any other value, and for types other than float32, float16, bfloat16.
bool ConstantFloat(const Value& v, float* out);

// The dimensions around an axis in memory: `outer` blocks of n by inner elements.
struct Extent {
  int64_t outer = 1, n = 1, inner = 1;
};
Extent ExtentOf(const Value& v, int64_t axis, Layout layout = Layout::kPlain);

// Returns the element strides of plain memory.
std::vector<int64_t> StridesOf(std::span<const int64_t> dims);

// Return the operand number, in the problem, of input or output k of node i.
inline int InputOf(const Problem& p, int k, int i = 0) { return p.operand(i, k); }
int OutputOf(const Problem& p, int k = 0, int i = 0);
// Returns the operand number of an output of the problem, or -1 if the value is none.
int OutputNumber(const Problem& p, int32_t value_id);

// Estimates the time in microseconds of launches that move `bytes` and compute `operations`.
double GpuUs(const Roofs& roofs, double bytes, double operations = 0, int launches = 1);
// The same for the problem's device.
inline double GpuUs(const Problem& p, double bytes, double operations = 0, int launches = 1) {
  return GpuUs(RoofsOf(p.handle()), bytes, operations, launches);
}
double BytesOf(const Problem& p);  // bytes of all operands

}  // namespace mge::gpu
