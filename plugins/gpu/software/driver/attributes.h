// SPDX-License-Identifier: Apache-2.0
// Numbers of libcuda's device attributes (CUdevice_attribute of cuda.h).
#pragma once

namespace mge::software::driver {

enum class Attribute : int {
  kMultiprocessors = 16,
  kMemoryClock = 36,
  kBusBits = 37,
  kMajor = 75,
  kMinor = 76,
  kVirtualMemory = 102,
};

}  // namespace mge::software::driver
