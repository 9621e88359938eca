// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/launch.h"

namespace mge::gpu {

std::string FaultText(const Fault& f) {
  if (f.what == Fault::kIndex) {
    return "index " + std::to_string(f.value) + " is outside of [" + std::to_string(-f.bound) + ", " +
           std::to_string(f.bound) + ")";
  }
  if (f.what == Fault::kLength) {
    return "sequence length " + std::to_string(f.value) + " is outside of 0.." + std::to_string(f.bound);
  }
  return "integer division of " + std::to_string(f.value) + " by " + std::to_string(f.bound) + " has no result";
}

}  // namespace mge::gpu
