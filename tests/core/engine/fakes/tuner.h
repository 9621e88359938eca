// SPDX-License-Identifier: Apache-2.0
// Counters and switches of the fake backend "tuner". A test gets them through the table's extension slot.
#pragma once

#include <cstdint>

#include "mge/plugin.h"

#define MGE_TUNER_RECORD "mge.test.tuner"

inline constexpr int64_t kFailAlways = -1;

// The record of the backend. Its kernels of Relu, Neg and Conv (one weight) in float32 are:
//
//   kernel   takes   estimate  operators  properties
//   slow     300 us  1 us      Relu       correct
//   steady   100 us  10 us     Relu       correct
//   loose    10 us   20 us     both       correct, not bitwise repeatable
//   wrong    0 us    5 us      both       copies its input
//   rough    0 us    0.5 us    both       correct to three digits, as its attribute declares
//   matrix   0 us    0.7 us    Neg        correct, not bitwise repeatable, declares that it uses tensor cores
//   tight    200 us  10 us     Conv       correct
//   roomy    10 us   20 us     Conv       correct, needs a workspace of 1 MiB
//   stuck    forever  0.1 us   Relu, Conv only with TUNER_STUCK, which also lets all kernels of Neg crash
//   breaks   0 us    0.2 us    Conv       only with TUNER_STUCK; crashes
//   plain    30 ms             both       correct, marked as the reference; offered only with `with_plain`
struct TunerRecord {
  int64_t launches = 0;  // launches of all kernels
  int64_t slow = 0, steady = 0, loose = 0, wrong = 0, rough = 0, matrix = 0, tight = 0, roomy = 0, stuck = 0, breaks = 0;
  int64_t orders = 0, pool_acquires = 0, reserves = 0;  // calls of the backend's own parts
  uint64_t arena_bytes = 0;                             // arena of the last plan given to the reserve policy
  uint64_t held = 0;                                    // bytes of slabs that are not released
  void* arena = nullptr;                                // last reservation of the backend's own pool
  int64_t fail_slab = 0;                                // the n-th slab from here fails; 0: none, kFailAlways: all
  int64_t most_at_once = 0;                             // kernels that ran at the same time
  uint64_t workspace = 0;                               // bytes that every kernel requests
  uint64_t more_workspace = 0;                          // bytes by which every candidate's bound is larger than `workspace`
  bool with_plain = false, plain_fails = false;
  const char* unable = nullptr;  // kernels that are offered but cannot be prepared: "slow loose"
  int64_t unable_asked = 0;      // number of attempts to prepare one of them
};
