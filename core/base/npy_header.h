// SPDX-License-Identifier: Apache-2.0
// The header of .npy files, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
// The format is specified in NumPy's numpy.lib.format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace mge {

struct NpyHeader {
  std::string descr;  // as in the file: "<f4"
  DType dtype = DType::kUndefined;
  int64_t element_bytes = 0;  // size in the file; for text, 4 per character
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// Parses a header. Accepts any spacing and any order of the three keys, but no other Python syntax.
// Errors: kBadInputFile; kUnsupportedType for NumPy types that have no DType.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text);

// Returns NumPy's name of a type, such as "<f4", or "" if NumPy has no such type.
std::string NpyDescr(DType dtype);

// Returns nullopt if `text` is not valid UTF-8.
std::optional<std::u32string> Utf8ToUtf32(std::string_view text);

}  // namespace mge
