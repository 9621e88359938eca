// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/row.h"

#include <algorithm>

#include "mge/float16.hpp"

namespace mge::gpu {
namespace {

struct TypeRow {
  mge_dtype type;
  const char* suffix;
  const char* name;
};
constexpr TypeRow kTypes[] = {
    {MGE_DTYPE_F32, "f32", "float32"},    {MGE_DTYPE_F64, "f64", "float64"}, {MGE_DTYPE_F16, "f16", "float16"},
    {MGE_DTYPE_BF16, "bf16", "bfloat16"}, {MGE_DTYPE_I8, "i8", "int8"},      {MGE_DTYPE_I16, "i16", "int16"},
    {MGE_DTYPE_I32, "i32", "int32"},      {MGE_DTYPE_I64, "i64", "int64"},   {MGE_DTYPE_U8, "u8", "uint8"},
    {MGE_DTYPE_U16, "u16", "uint16"},     {MGE_DTYPE_U32, "u32", "uint32"},  {MGE_DTYPE_U64, "u64", "uint64"},
    {MGE_DTYPE_BOOL, "bool", "bool"}};

const TypeRow* Find(mge_dtype t) {
  for (const TypeRow& row : kTypes) {
    if (row.type == t) return &row;
  }
  return nullptr;
}

}  // namespace

bool Accept(const Problem& p, Offers& offers, bool groups, bool adds) {
  auto refuse = [&](std::string_view reason) {
    offers.Refuse(reason);
    return false;
  };
  if (const std::string_view why = WhyNotUsual(p, groups, adds); !why.empty()) return refuse(why);
  for (int i = 0; i < p.input_count() + p.output_count(); ++i) {
    Value v = i < p.input_count() ? p.input(i) : p.output(i - p.input_count());
    if (!IsSupported(v.dtype())) return refuse("no kernel for " + std::string(TypeName(v.dtype())));
    if (v.rank() > kMaxRank) return refuse("more than 8 dimensions");
  }
  return true;
}

std::string_view TypeSuffix(mge_dtype t) { return Find(t) ? Find(t)->suffix : ""; }
std::string_view TypeName(mge_dtype t) {
  if (const TypeRow* row = Find(t)) return row->name;
  return t == MGE_DTYPE_STRING ? "string" : t == MGE_DTYPE_C64 || t == MGE_DTYPE_C128 ? "complex" : "an unknown type";
}
std::string KernelFor(std::string_view base, mge_dtype t) { return std::string(base) + "_" + std::string(TypeSuffix(t)); }

bool ConstantFloat(const Value& v, float* out) {
  if (!v.is_constant() || !v.is_static() || v.elements() != 1) return false;
  switch (v.dtype()) {
    case MGE_DTYPE_F32: return *out = v.data<float>()[0], true;
    case MGE_DTYPE_F16: return *out = static_cast<float>(v.data<F16>()[0]), true;
    case MGE_DTYPE_BF16: return *out = static_cast<float>(v.data<BF16>()[0]), true;
    default: return false;
  }
}

Extent ExtentOf(const Value& v, int64_t axis, Layout layout) {
  Extent e;
  bool past_axis = false;
  for (const size_t d : MemoryOrder(layout, v.dims().size())) {
    const bool at = static_cast<int64_t>(d) == axis;
    (at ? e.n : past_axis ? e.inner : e.outer) *= v.dims()[d];
    past_axis = past_axis || at;
  }
  return e;
}

std::vector<int64_t> StridesOf(std::span<const int64_t> dims) { return StridesIn(Layout::kPlain, dims); }

int OutputOf(const Problem& p, int k, int i) { return OutputNumber(p, p.node(i).output_id(k)); }

int OutputNumber(const Problem& p, int32_t value_id) {
  for (int o = 0; o < p.output_count(); ++o) {
    if (p.raw()->graph->outputs[o] == value_id) return o;
  }
  return -1;
}

double GpuUs(const Roofs& roofs, double bytes, double operations, int launches) {
  constexpr double kLaunchUs = 4;
  return launches * kLaunchUs + std::max(bytes / roofs.bytes_per_us, operations / roofs.operations_per_us);
}

double BytesOf(const Problem& p) {
  double bytes = 0;
  for (int i = 0; i < p.input_count(); ++i) bytes += static_cast<double>(p.input(i).bytes());
  for (int i = 0; i < p.output_count(); ++i) bytes += static_cast<double>(p.output(i).bytes());
  return bytes;
}

}  // namespace mge::gpu
