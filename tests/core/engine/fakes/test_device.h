// SPDX-License-Identifier: Apache-2.0
// The device of backends that test kernels only: one device, in host memory, chosen only by its name.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"

struct Device {
  static mge::Result List(mge::DeviceList& list) {
    list.Add({.name = "a device for tests", .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_ONLY_BY_NAME});
    return {};
  }
  explicit Device(uint32_t) {}
};
