// SPDX-License-Identifier: Apache-2.0
// The library of a driver, which takes it for granted that there is memory: its own, and what the C library takes for it.
#include <cstdlib>
#include <cstring>

extern "C" __attribute__((visibility("default"))) int vendor_driver_open() {
  auto* room = static_cast<volatile char*>(std::malloc(100));
  auto* name = const_cast<volatile char*>(strdup("the driver"));
  room[0] = name[0];
  const bool right = room[0] == 't';
  std::free(const_cast<char*>(name));
  std::free(const_cast<char*>(room));
  return right ? 0 : 1;
}
