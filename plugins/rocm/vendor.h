// SPDX-License-Identifier: Apache-2.0
// The settings of this backend.
#pragma once

#include "mge/plugin.hpp"

namespace mge::rocm {

inline constexpr mge_setting kDriver =
    TextSetting("rocm.driver", "", "Absolute path of the driver's library; empty: libamdhip64.so of the system.");

}  // namespace mge::rocm
