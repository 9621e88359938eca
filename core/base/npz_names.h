// SPDX-License-Identifier: Apache-2.0
// The names of the arrays in a .npz file. The command includes this header, whose own tensors have the name of those of npy.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"

namespace mge {

inline constexpr int64_t kMaxArrayFileBytes = int64_t{16} << 30;

// Returns the names in the archive's order, without unpacking the arrays. `place` is the file's name for messages. Fails with
// kBadInputFile, or with kLimit if there are more than 10,000.
absl::StatusOr<std::vector<std::string>> NpzNames(Bytes bytes, std::string_view place);

}  // namespace mge
