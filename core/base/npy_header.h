// SPDX-License-Identifier: Apache-2.0
// The header of .npy files: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, a Python
// literal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace mge {

struct NpyHeader {
  std::string descr;  // as written: "<f4"
  DType dtype = DType::kUndefined;
  int64_t element_bytes = 0;  // in the file; of text, 4 a character
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// Reads the one form of literal that NumPy writes, with any spacing and order of its keys.
// kBadInputFile, and kUnsupportedType for element types that exist but cannot be read.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text);

// "<f4"; empty for types without a name in NumPy.
std::string NpyDescr(DType dtype);

// nullopt if `text` is not UTF-8.
std::optional<std::u32string> Utf8ToUtf32(std::string_view text);

}  // namespace mge
