// SPDX-License-Identifier: Apache-2.0
// Attention of a few queries over many keys, as in the generation of text: each query reads all keys, so memory limits the speed.
//
// Algorithm: the softmax is computed block by block with a running maximum, so that no memory for all scores is needed (M. Milakov
// and N. Gimelshein, "Online normalizer calculation for softmax", 2018). Queries that share keys are computed together, so that
// each key is read once for all of them.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// The maximum number of queries that are computed together, and of floats in a head.
inline constexpr int kAttendRows = 4;
inline constexpr int64_t kAttendSize = 512;

// Queries that share keys and values.
struct AttendTask {
  int rows;                     // 1 .. kAttendRows
  int64_t size;                 // floats of a head, at most kAttendSize
  const float* q[kAttendRows];  // multiplied by the scale
  float* out[kAttendRows];
  int64_t begin[kAttendRows], end[kAttendRows];  // the keys that a query sees; at least one
  const float* k;                                // keys and values, `size` floats each, one after another
  const float* v;
  float softcap;  // limits the scores to this size; 0: no limit
  bool has_sinks;
  float sinks[kAttendRows];  // exp(sink) is added to the sum of the softmax
};

struct AttentionTable {
  void (*attend)(const AttendTask& task);
};

MGE_CPU_DISPATCH(AttentionTable, Attention)

}  // namespace mge::cpu
