// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

namespace backend {

// Writes the candidates' numbers, best first. They have passed the host's filters (determinism, workspace, budget), and are
// timed in the mode PROFILE. The host rejects anything that is not a permutation of them. ReadyOrder writes the host's own
// order: by measured time, by estimate, or in the mode REPRODUCIBLE by rank and id only. Change it where you know better.
mge::Result Strategy::Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
  return mge::ReadyOrder(choice, order);
}

}  // namespace backend
