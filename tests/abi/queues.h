/* SPDX-License-Identifier: Apache-2.0
 * What the host has asked of the backend queues.c: the table that it has under this name, up to an entry without one. */
#ifndef MGE_TESTS_ABI_QUEUES_H_
#define MGE_TESTS_ABI_QUEUES_H_

#include <stdint.h>

#define MGE_TEST_ASKED "mge.test.asked"

typedef struct Asked {
  const char* slot;
  uint32_t times;
} Asked;

#endif /* MGE_TESTS_ABI_QUEUES_H_ */
