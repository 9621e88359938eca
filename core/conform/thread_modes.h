// SPDX-License-Identifier: Apache-2.0
// How a thread computes with floating point: the direction of rounding, and what becomes of tiny numbers. It is the host's,
// and a call of the backend hands it back as it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mge::conform {

struct ThreadModes {
  int rounding = 0;  // of fegetround
  uint32_t sse = 0;  // control bits of MXCSR; 0 on other processors
  uint16_t x87 = 0;  // control word

  static ThreadModes Now();
  void Restore() const;
  bool operator==(const ThreadModes&) const = default;
};

// Puts right what a call has changed in this thread since `before`, and keeps it for TakeModeChange. [any thread]
void NoteModes(const ThreadModes& before, std::string_view call);
// What the first call since the last time has changed, as a sentence; "" if none has. [any thread]
std::string TakeModeChange();

}  // namespace mge::conform
