// SPDX-License-Identifier: Apache-2.0
// The division of an array into parts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mge {

struct ElementRange {
  int64_t begin, count;
};

// Returns part number `part` of `elements` elements in `parts` parts. The first parts have one element more if needed.
constexpr ElementRange PartOfElements(int64_t elements, uint32_t part, uint32_t parts) {
  const int64_t each = elements / parts, rest = elements % parts;
  return {each * part + std::min<int64_t>(rest, part), each + (part < rest ? 1 : 0)};
}

}  // namespace mge
