// SPDX-License-Identifier: Apache-2.0
// What a fake backend lets a test see, through the table's extension slot.
#pragma once

#include <cstdint>

#include "mge/plugin.h"

#define MGE_TEST_RECORD "mge.test.record"

struct mge_test_record {
  const mge_host* host;
  int64_t starts, stops, opens, closes;
  uint64_t held;  // bytes of slabs
  int64_t slabs, pool_acquires, trims;
  int32_t pressures;  // bits: the levels at which the reserve policy was asked
};
