/* SPDX-License-Identifier: Apache-2.0
 * A library that a backend is linked with and that is not found when it is opened. */
__attribute__((visibility("default"))) int mge_test_gone(void) { return 1; }
