// SPDX-License-Identifier: Apache-2.0
// The one device of this backend: the processor, as cpu0.
#pragma once

#include <string>

#include "mge/plugin.hpp"

namespace mge::cpu {

// Key of tuning results: machines on which equal choices are right.
const std::string& DeviceClass();

extern const mge_device_api kDeviceApi;

}  // namespace mge::cpu
