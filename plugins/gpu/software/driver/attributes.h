// SPDX-License-Identifier: Apache-2.0
// Numbers of device attributes: those of libcuda (CUdevice_attribute in cuda.h), or of libamdhip64 (hipDeviceAttribute_t in
// hip_runtime_api.h of HIP 5).
#pragma once

namespace mge::software::driver {

#ifdef MGE_SOFTWARE_HIP
inline constexpr unsigned kWarp = 64;
enum class Attribute : int {
  kClock = 5,
  kMajor = 23,
  kBusBits = 59,
  kMemoryClock = 60,
  kMinor = 61,
  kMultiprocessors = 63,
  kVirtualMemory = -1,  // does not exist
};
#else
inline constexpr unsigned kWarp = 32;
enum class Attribute : int {
  kClock = 13,
  kMultiprocessors = 16,
  kMemoryClock = 36,
  kBusBits = 37,
  kMajor = 75,
  kMinor = 76,
  kVirtualMemory = 102,
};
#endif

}  // namespace mge::software::driver
