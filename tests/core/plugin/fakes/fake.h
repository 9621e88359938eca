// SPDX-License-Identifier: Apache-2.0
// The record of a fake backend. A test gets it through the table's extension slot.
#pragma once

#include <cstdint>

#include "mge/plugin.h"

#define MGE_TEST_RECORD "mge.test.record"

struct mge_test_record {
  const mge_host* host;
  int64_t starts, stops, opens, closes;
  uint64_t held;  // bytes of slabs that are not released
  int64_t slabs, pool_acquires, trims;
  int32_t pressures;  // bit mask of the pressure levels at which the reserve policy was called
};
