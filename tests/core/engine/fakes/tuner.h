// SPDX-License-Identifier: Apache-2.0
// What the fake backend "tuner" lets a test see, through the table's extension slot.
#pragma once

#include <cstdint>

#include "mge/plugin.h"

#define MGE_TUNER_RECORD "mge.test.tuner"

inline constexpr int64_t kFailAlways = -1;

// Kernels of Relu and Neg in float32: "slow" is right, takes 300 us and thinks 1; "steady" is right, takes 100 us and thinks
// 10; "loose" is right, takes 10 us, thinks 20 and does not repeat its bits; "wrong" takes no time, thinks 5 and copies its
// input; "rough" takes no time, thinks 0.5, and is right to three digits, as its attribute says; "matrix" is right, takes no
// time, thinks 0.7, does not repeat its bits and says that it runs on tensor cores. "slow" and "steady" are of Relu alone,
// "matrix" is of Neg alone. "plain" is right, takes 500 us and says that it is the reference; it is offered if asked for.
struct TunerRecord {
  int64_t launches = 0;  // of all kernels
  int64_t slow = 0, steady = 0, loose = 0, wrong = 0, rough = 0, matrix = 0;
  int64_t orders = 0, pool_acquires = 0, reserves = 0;  // calls of parts of its own
  uint64_t arena_bytes = 0;                             // of the last plan that the reserve policy was asked about
  uint64_t held = 0;                                    // bytes of slabs
  void* arena = nullptr;                                // what its own pool handed out last
  int64_t fail_slab = 0;                                // this many slabs from now fails; 0: none does, kFailAlways: all
  uint64_t workspace = 0;                               // that every kernel asks for
  uint64_t more_workspace = 0;                          // that every candidate says beyond that, and no kernel asks for
  bool with_plain = false, plain_fails = false;
  const char* unable = nullptr;                         // kernels that are offered and cannot be prepared: "slow loose"
  int64_t unable_asked = 0;                             // how often one of them was to be prepared
};
