/* SPDX-License-Identifier: Apache-2.0
 * Counters of the calls that the host made to the backend queues.c. Its extension slot returns them under the name
 * MGE_TEST_ASKED, as an array that ends with an entry without a name. */
#ifndef MGE_TESTS_ABI_QUEUES_H_
#define MGE_TESTS_ABI_QUEUES_H_

#include <stdint.h>

#define MGE_TEST_ASKED "mge.test.asked"

typedef struct Asked {
  const char* slot;
  uint32_t times;
} Asked;

#endif /* MGE_TESTS_ABI_QUEUES_H_ */
