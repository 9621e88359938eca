// SPDX-License-Identifier: Apache-2.0
// The floating-point modes of a thread: the rounding direction and the handling of subnormal numbers. They belong to the
// host. A call of the backend must leave them unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mge::conform {

struct ThreadModes {
  int rounding = 0;  // the value of fegetround()
  uint32_t sse = 0;  // control bits of MXCSR; 0 on other processors
  uint16_t x87 = 0;  // x87 control word; 0 on other processors

  static ThreadModes Now();
  void Restore() const;
  bool operator==(const ThreadModes&) const = default;
};

// Restores the modes of this thread if they differ from `before`, and records the change for TakeModeChange(). Thread-safe.
void NoteModes(const ThreadModes& before, std::string_view call);
// Returns the first change since the last call, of any thread, as a sentence, or "". Thread-safe.
std::string TakeModeChange();

}  // namespace mge::conform
