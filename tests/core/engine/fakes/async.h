// SPDX-License-Identifier: Apache-2.0
// Counters of the asynchronous test backend, and switches that make it fail. A test gets them through the extension slot.
#pragma once

#include <atomic>
#include <cstdint>

#define MGE_ASYNC_CONTROL "mge.test.async"

inline constexpr int64_t kEveryCopy = INT64_MAX / 2;

struct mge_async_control {
  // Counters; a test may reset them.
  std::atomic<int64_t> kernels{0}, replays{0}, captures{0};
  std::atomic<int64_t> copies_in{0}, copies_out{0}, peer_copies{0}, copied_bytes_in{0};
  std::atomic<int64_t> wrong_memory{0};                   // copies that named an address of neither this device nor the host
  std::atomic<int64_t> most_at_once{0};                   // largest number of queues that worked at the same time
  std::atomic<int64_t> queues{0}, fences{0}, records{0};  // objects that are alive
  std::atomic<int64_t> packed{0};                         // constants packed on the host
  std::atomic<int64_t> packed_on_queue{0};                // constants packed on a queue
  std::atomic<int64_t> early_waits{0};                    // waits for values whose signal had not been enqueued
  std::atomic<int64_t> hanging{0};                        // kernels and copies that hang at this moment
  // Faults. They take effect at the next call.
  std::atomic<bool> kernel_fails{false};         // the next kernel returns MGE_INTERNAL
  std::atomic<bool> lost{false};                 // every call returns MGE_DEVICE_LOST
  std::atomic<bool> hangs{false};                // kernels hang while this is set, unless they are cancelled
  std::atomic<bool> stubborn{false};             // kernels that hang ignore cancellation
  std::atomic<int64_t> good_copies{kEveryCopy};  // number of copies that still end; later ones hang until it is raised
  std::atomic<bool> packs_on_host{false};        // prepack_on is unimplemented
  std::atomic<bool> overruns{false};             // Relu writes a byte past its output
  std::atomic<uint32_t> link_flags{0};           // flags added to those of every link
  // Microseconds that a kernel or copy takes, and that a wait of the host takes at least.
  std::atomic<int64_t> kernel_us{0}, copy_us{0}, wait_us{0};
};
