// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/launch.h"

namespace mge::gpu {

Result ErrorOf(const Fault& f) {
  if (f.what == Fault::kIndex) {
    return {MGE_OUT_OF_RANGE, "index " + std::to_string(f.value) + " is outside of [" + std::to_string(-f.bound) + ", " +
                                  std::to_string(f.bound) + ")"};
  }
  if (f.what == Fault::kLength) {
    return {MGE_OUT_OF_RANGE, "sequence length " + std::to_string(f.value) + " is outside of 0.." + std::to_string(f.bound)};
  }
  return {MGE_INVALID_ARGUMENT, "an integer is divided by zero"};
}

}  // namespace mge::gpu
