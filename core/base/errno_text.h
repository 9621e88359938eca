// SPDX-License-Identifier: Apache-2.0
// The text of a number in errno.
#pragma once

#include <string>
#include <system_error>

namespace mge {

// Returns text such as "No such file or directory". Safe on any thread, unlike std::strerror.
inline std::string ErrnoText(int error) { return std::generic_category().message(error); }

}  // namespace mge
