// SPDX-License-Identifier: Apache-2.0
// Joins relocatable objects to one block of position-independent machine code: the part of a linker that chains need.
//
//   - The image has the sections that the entry reaches. It begins with a jump to the entry.
//   - Sections refer to each other by distances, which do not depend on the image's address. Absolute addresses and functions
//     outside of the objects are errors: an image may be stored and used by another process.
//   - Supports ELF of x86-64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mge::jit {

// Constant data under a name to which the objects may refer.
struct NamedData {
  std::string_view name, bytes;
};

// Writes the image whose entry is the global symbol `entry`. Returns the reason if that fails, else an empty text.
std::string LinkImage(const std::vector<std::string_view>& objects, const std::vector<NamedData>& data,
                      std::string_view entry, std::string* image);

}  // namespace mge::jit
