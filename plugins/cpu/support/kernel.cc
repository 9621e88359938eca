// SPDX-License-Identifier: Apache-2.0
#include "support/kernel.h"

namespace mge::cpu {

bool Accept(const Problem& p, Offers& offers, bool groups, bool adds) {
  if (!groups && p.node_count() != 1) {
    offers.Refuse("computes one node, not a group");
    return false;
  }
  for (int i = 0; i < p.node_count(); ++i) {
    if (!HasOwnMeaning(p.node(i))) continue;
    offers.Refuse("the node is from an old operator set in which it has another meaning");
    return false;
  }
  if (!p.is_static()) {
    offers.Refuse("a shape is not known");
    return false;
  }
  for (int i = 0; i < p.output_count(); ++i) {
    if (p.adds(i) && !adds) {
      offers.Refuse("cannot add to its output");
      return false;
    }
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

bool HasOwnMeaning(const Node& node) {
  for (uint64_t i = 0; i < node.raw()->attr_count; ++i) {
    if (View(node.raw()->attrs[i]->name).starts_with('_')) return true;
  }
  return false;
}

bool ConstantInts(const Node& node, int input, std::vector<int64_t>& out) {
  if (!node.has_input(input)) return false;
  Value v = node.input(input);
  if (v.elements() == 0) {
    out.clear();
    return true;
  }
  if (!v.is_constant()) return false;
  if (v.dtype() == MGE_DTYPE_I64) {
    auto data = v.data<int64_t>();
    out.assign(data.begin(), data.end());
    return true;
  }
  if (v.dtype() == MGE_DTYPE_I32) {
    auto data = v.data<int32_t>();
    out.assign(data.begin(), data.end());
    return true;
  }
  return false;
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
