// SPDX-License-Identifier: Apache-2.0
// Addresses of device memory, which nothing on the host can use.
//
// The address that the host is given is that of the mapping behind it with its upper 16 bits set to a tag that no processor
// accepts in an address: to touch it faults, in every thread and at any time. Sums, differences, order and alignment are
// those of the mapping, so that pools and steps compute with it as with any other. Only work that runs "on the device"
// turns it back.
//
// The tag is not a number in any other sense either: read as float, half or bfloat16 it is a NaN, read as an integer it is
// next to the largest. So an aligned word of a kernel's arguments that has the tag is an address.
#pragma once

#include <cstdint>

namespace mge::software {

static_assert(sizeof(void*) == 8, "device addresses need the upper bits of a pointer");

inline constexpr uint64_t kAddressTag = UINT64_C(0x7ff5) << 48;
inline constexpr uint64_t kAddressTagBits = UINT64_C(0xffff) << 48;

inline bool IsDeviceAddress(uint64_t word) { return (word & kAddressTagBits) == kAddressTag; }
inline bool IsDeviceAddress(const void* address) { return IsDeviceAddress(reinterpret_cast<uint64_t>(address)); }

inline void* ToDevice(const void* mapped) { return reinterpret_cast<void*>(reinterpret_cast<uint64_t>(mapped) | kAddressTag); }
inline char* ToMapped(const void* device) {
  return reinterpret_cast<char*>(reinterpret_cast<uint64_t>(device) & ~kAddressTagBits);
}

}  // namespace mge::software
