// SPDX-License-Identifier: Apache-2.0
// The backend under test: the CPU backend, for every instruction set that it and this machine support.
#pragma once

#include <functional>

#include "tests/support/backend_harness.h"

namespace mge::testing {

inline Backend& UnderTest() {
  static Backend backend(MGE_BINARY_DIR "/lib/mge/plugins/mge_cpu.so");
  return backend;
}

// Runs the test with each value of cpu.isa. A value that the machine lacks gives the next lower one.
inline void OnEveryMachine(const std::function<void(Backend&)>& test) {
  for (const char* isa : {"portable", "avx2", "avx2_vnni", "avx512", "auto"}) {
    UnderTest().Set("cpu.isa", isa);
    test(UnderTest());
  }
  UnderTest().Set("cpu.isa", "auto");
}

}  // namespace mge::testing
