// SPDX-License-Identifier: Apache-2.0
#include "support/kernel.h"

namespace mge::cpu {

bool Accept(const Problem& p, Offers& offers, bool groups, bool adds) {
  if (const std::string_view why = WhyNotUsual(p, groups, adds); !why.empty()) {
    offers.Refuse(why);
    return false;
  }
  auto supported = [&](const Value& v) {
    if (IsSupported(v.dtype())) return true;
    offers.Refuse("no kernel for " + std::string(TypeName(v.dtype())));
    return false;
  };
  for (int i = 0; i < p.input_count(); ++i) {
    if (!supported(p.input(i))) return false;
  }
  for (int i = 0; i < p.output_count(); ++i) {
    if (!supported(p.output(i))) return false;
  }
  return true;
}

std::string_view TypeName(mge_dtype type) {
  switch (type) {
    case MGE_DTYPE_F32: return "float32";
    case MGE_DTYPE_F64: return "float64";
    case MGE_DTYPE_F16: return "float16";
    case MGE_DTYPE_BF16: return "bfloat16";
    case MGE_DTYPE_I8: return "int8";
    case MGE_DTYPE_I16: return "int16";
    case MGE_DTYPE_I32: return "int32";
    case MGE_DTYPE_I64: return "int64";
    case MGE_DTYPE_U8: return "uint8";
    case MGE_DTYPE_U16: return "uint16";
    case MGE_DTYPE_U32: return "uint32";
    case MGE_DTYPE_U64: return "uint64";
    case MGE_DTYPE_BOOL: return "bool";
    case MGE_DTYPE_STRING: return "string";
    case MGE_DTYPE_C64: return "complex64";
    case MGE_DTYPE_C128: return "complex128";
    default: return "an unknown type";
  }
}

}  // namespace mge::cpu
