/* SPDX-License-Identifier: Apache-2.0
 * Utilities of the backends of this folder. Each backend is built from the headers of this host and from those that
 * synthetic.cmake writes. Backends use only members that all headers have, and write out structs member by member. They fill
 * newer members with invalid values, which the host must ignore. */
#ifndef MGE_TESTS_ABI_SYNTHETIC_H_
#define MGE_TESTS_ABI_SYNTHETIC_H_

#define STRING(s) \
  { s, sizeof(s) - 1 }
#ifdef MGE_TEST_NEWER
#define NEWER .newer_number = 0xdeadbeef, .newer_pointer = (void*)0xdead,
#else
#define NEWER
#endif

#endif /* MGE_TESTS_ABI_SYNTHETIC_H_ */
