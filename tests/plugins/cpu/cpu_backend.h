// SPDX-License-Identifier: Apache-2.0
// The CPU backend's library, for every instruction set that it and this machine know.
#pragma once

#include <functional>

#include "tests/support/backend_harness.h"

namespace mge::testing {

inline Backend& Cpu() {
  static Backend backend(MGE_BINARY_DIR "/lib/mge/plugins/mge_cpu.so");
  return backend;
}

// Runs the test with each cap of cpu.isa; what the machine lacks is the same as the cap below.
inline void ForEachIsa(const std::function<void(Backend&)>& test) {
  for (const char* isa : {"portable", "avx2", "avx512"}) {
    Cpu().Set("cpu.isa", isa);
    test(Cpu());
  }
  Cpu().Set("cpu.isa", "auto");
}

inline Tolerance Exactly(DType) { return {}; }
inline Tolerance Closely(DType t) { return ToleranceOf(t, 4); }
inline Tolerance Roughly(DType t) { return ToleranceOf(t, 40); }

}  // namespace mge::testing
