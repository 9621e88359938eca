// SPDX-License-Identifier: Apache-2.0
// Device addresses that the host cannot access.
//
// Each device address is the address of a host mapping, with its upper 16 bits set to a tag. No processor accepts this tag
// in an address: any access faults, in every thread. Sums, differences, order and alignment are the same as in the mapping,
// so pools and steps can compute with device addresses. Only work that runs "on the device" removes the tag.
//
// A tagged word is not a plausible number either. As float, half or bfloat16 it is a NaN; as an integer it is very large. So
// an aligned word of a kernel's arguments that has the tag is an address.
#pragma once

#include <cstdint>

namespace mge::software {

static_assert(sizeof(void*) == 8, "device addresses need the upper bits of a pointer");

inline constexpr uint64_t kAddressTag = UINT64_C(0x7ff5) << 48;
inline constexpr uint64_t kAddressTagBits = UINT64_C(0xffff) << 48;

inline bool IsDeviceAddress(uint64_t word) { return (word & kAddressTagBits) == kAddressTag; }
inline bool IsDeviceAddress(const void* address) { return IsDeviceAddress(reinterpret_cast<uint64_t>(address)); }

inline void* ToDevice(const void* mapped) {
  return reinterpret_cast<void*>(reinterpret_cast<uint64_t>(mapped) | kAddressTag);
}
inline char* ToMapped(const void* device) {
  return reinterpret_cast<char*>(reinterpret_cast<uint64_t>(device) & ~kAddressTagBits);
}

}  // namespace mge::software
