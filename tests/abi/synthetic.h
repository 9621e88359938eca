/* SPDX-License-Identifier: Apache-2.0
 * What the backends of this folder share. They are built from the headers of this host and from those of synthetic.cmake:
 * they use only what all of them have, write the members of what they are handed one by one, and fill what is newer with
 * rubbish. */
#ifndef MGE_TESTS_ABI_SYNTHETIC_H_
#define MGE_TESTS_ABI_SYNTHETIC_H_

#define STRING(s) {s, sizeof(s) - 1}
#ifdef MGE_TEST_NEWER
#define NEWER .newer_number = 0xdeadbeef, .newer_pointer = (void*)0xdead,
#else
#define NEWER
#endif

#endif /* MGE_TESTS_ABI_SYNTHETIC_H_ */
