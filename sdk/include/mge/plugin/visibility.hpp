// SPDX-License-Identifier: Apache-2.0
// The visibility of this SDK's C++ namespace.
#pragma once

// Hides the namespace's symbols: two backends in one process, built with different SDKs, must not share inline functions.
#define MGE_HIDDEN __attribute__((visibility("hidden")))
