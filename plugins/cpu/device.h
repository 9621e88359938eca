// SPDX-License-Identifier: Apache-2.0
// The only device of this backend: the processor, as cpu0.
#pragma once

#include <string>

#include "mge/plugin.hpp"

namespace mge::cpu {

// Returns the key of tuning results: equal for machines where the same choices are best.
const std::string& DeviceClass();

extern const mge_device_api kDeviceApi;

}  // namespace mge::cpu
