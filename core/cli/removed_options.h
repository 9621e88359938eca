// SPDX-License-Identifier: Apache-2.0
// Options that an earlier version had under another name. The error about an unknown option tells the successor. A row stays for
// one version.
#pragma once

#include <string_view>

namespace mge::cli {

struct RemovedOption {
  std::string_view command;  // "mge train"
  std::string_view name;
  std::string_view successor;
};
inline constexpr RemovedOption kRemovedOptions[] = {
    {"mge doctor", "--release", "--end-quarantine"},
    {"mge run", "--compare", "--against"},
    {"mge sdk test", "--limit", "--timeout"},
};

}  // namespace mge::cli
