// SPDX-License-Identifier: Apache-2.0
// What the asynchronous test backend counts and lets a test break, through the table's extension slot.
#pragma once

#include <atomic>
#include <cstdint>

#define MGE_ASYNC_CONTROL "mge.test.async"

inline constexpr int64_t kEveryCopy = INT64_MAX / 2;

struct mge_async_control {
  // Counters.
  std::atomic<int64_t> kernels{0}, replays{0}, captures{0};
  std::atomic<int64_t> copies_in{0}, copies_out{0}, peer_copies{0}, copied_bytes_in{0};
  std::atomic<int64_t> wrong_memory{0};  // copies that named an address of neither this device nor the host
  std::atomic<int64_t> most_at_once{0};  // queues that worked at one time
  std::atomic<int64_t> queues{0}, fences{0}, records{0};  // alive
  std::atomic<int64_t> packed{0};                         // constants
  std::atomic<int64_t> hanging{0};  // kernels and copies that do not end now
  // What goes wrong from now on.
  std::atomic<bool> kernel_fails{false};  // the next kernel answers MGE_INTERNAL
  std::atomic<bool> lost{false};          // everything answers MGE_DEVICE_LOST
  std::atomic<bool> hangs{false};         // kernels do not end while this is set, unless they are told to stop
  std::atomic<bool> stubborn{false};      // kernels that hang do not listen either
  std::atomic<int64_t> good_copies{kEveryCopy};  // so many still end; later ones do not until this is raised
  std::atomic<bool> overruns{false};      // Relu writes a byte past its output
  std::atomic<uint32_t> link_flags{0};    // beside those that are true
  // How long work takes, and a host's wait at least.
  std::atomic<int64_t> kernel_us{0}, copy_us{0}, wait_us{0};
};
