// SPDX-License-Identifier: Apache-2.0
// Settings of this backend. A key begins with the backend's name: the user sets MGE_NULL_DEVICES, or null.devices in a file.
// `mge env` shows it. The host checks type and range. A backend never reads the environment itself.
#pragma once

#include "mge/plugin.hpp"

namespace backend {

inline constexpr mge_setting kDevices =
    mge::IntSetting("null.devices", "1", 1, 16, "devices", "Number of devices that the backend null pretends to have.");

}  // namespace backend
