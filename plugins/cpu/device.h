// SPDX-License-Identifier: Apache-2.0
// The only device of this backend: the processor, as cpu0. An open device has no state.
#pragma once

#include "jit/compiler.h"
#include "mge/plugin.hpp"

namespace mge::cpu {

struct Device {
  static Result List(DeviceList& list);
  explicit Device(uint32_t /*index*/) {}
  // Fails if jit.backend names a compiler that is missing.
  static Result Init() { return CheckCompilerSetting(); }
};

}  // namespace mge::cpu
