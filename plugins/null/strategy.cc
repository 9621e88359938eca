// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

namespace backend {

// Writes the candidates' numbers, best first. They have passed the host's filters (determinism, workspace, budget), and in the
// mode PROFILE they have been timed; whatever is not an order of them all is refused. This is the host's own order: by the
// clock, by the estimate, or in the mode REPRODUCIBLE by rank and name alone. Put before it what you know better.
mge::Result Strategy::Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
  return mge::ReadyOrder(choice, order);
}

}  // namespace backend
