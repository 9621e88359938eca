// SPDX-License-Identifier: Apache-2.0
// The backend under test: the operators of plugins/gpu, run by the emulator with several machine settings.
#pragma once

#include <functional>

#include "tests/support/backend_harness.h"

namespace mge::testing {

inline Backend& UnderTest() {
  static Backend backend(MGE_BINARY_DIR "/tests/gpu/mge_emulated.so");
  return backend;
}

// Runs the test with combinations of warp size, thread order and way to reduce. Together they cover every path of the
// kernels.
inline void OnEveryMachine(const std::function<void(Backend&)>& test) {
  struct Machine {
    const char *warp, *order, *shuffles;
  };
  for (const Machine& m : {Machine{"32", "forward", "0"}, {"64", "reverse", "1"}, {"32", "shuffled", "1"}}) {
    UnderTest().Set("emulated.warp", m.warp);
    UnderTest().Set("emulated.order", m.order);
    UnderTest().Set("emulated.shuffles", m.shuffles);
    test(UnderTest());
  }
  for (auto [key, value] : {std::pair("warp", "32"), {"order", "forward"}, {"shuffles", "0"}}) {
    UnderTest().Set(std::string("emulated.") + key, value);
  }
}

}  // namespace mge::testing
