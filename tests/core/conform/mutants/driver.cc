// SPDX-License-Identifier: Apache-2.0
// A driver library. It crashes if an allocation fails: its own, or one that the C library makes for it.
#include <cstdlib>
#include <cstring>
#include <random>

extern "C" __attribute__((visibility("default"))) int vendor_driver_open() {
  auto* room = static_cast<volatile char*>(std::malloc(100));
  auto* name = const_cast<volatile char*>(strdup("the driver"));
  room[0] = name[0];
  const bool right = room[0] == 't';
  std::free(const_cast<char*>(name));
  std::free(const_cast<char*>(room));
  return right ? 0 : 1;
}

// Does some work of a driver with caches: keeps a block of memory, in one of three calls on average.
extern "C" __attribute__((visibility("default"))) void vendor_driver_work() {
  static thread_local std::minstd_rand random(std::random_device{}());
  [[maybe_unused]] static void* volatile kept;
  std::free(std::malloc(40));
  if (random() % 3 == 0) kept = std::malloc(16 + random() % 5000);
}
