// SPDX-License-Identifier: Apache-2.0
// The source of mge_test_headers, whose precompiled headers all tests use.
