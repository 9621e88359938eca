/* SPDX-License-Identifier: Apache-2.0
 * A library that is found and needs one that is not. */
int mge_test_gone(void);
__attribute__((visibility("default"))) int mge_test_between(void);
int mge_test_between(void) { return mge_test_gone(); }
