// SPDX-License-Identifier: Apache-2.0
#include "core/base/dtype.h"

#include <string>

namespace mge {
namespace {

struct Row {
  int64_t bytes;
  std::string_view name;
};

// Indexed by the value of DType.
constexpr Row kRows[kDTypeCount] = {
    {0, "undefined"},      {4, "float32"},    {1, "uint8"},
    {1, "int8"},           {2, "uint16"},     {2, "int16"},
    {4, "int32"},          {8, "int64"},      {sizeof(std::string), "string"},
    {1, "bool"},           {2, "float16"},    {8, "float64"},
    {4, "uint32"},         {8, "uint64"},     {8, "complex64"},
    {16, "complex128"},    {2, "bfloat16"},   {1, "float8e4m3fn"},
    {1, "float8e4m3fnuz"}, {1, "float8e5m2"}, {1, "float8e5m2fnuz"},
    {1, "uint4"},          {1, "int4"},       {1, "float4e2m1"},
    {1, "float8e8m0"},     {1, "uint2"},      {1, "int2"},
};

}  // namespace

int64_t ElementBytes(DType dtype) {
  int i = static_cast<int>(dtype);
  return i >= 0 && i < kDTypeCount ? kRows[i].bytes : 0;
}

std::string_view DTypeName(DType dtype) {
  int i = static_cast<int>(dtype);
  return i >= 0 && i < kDTypeCount ? kRows[i].name : kRows[0].name;
}

}  // namespace mge
