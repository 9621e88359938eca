// SPDX-License-Identifier: Apache-2.0
// Which of several kernels is best: this backend's selection strategy.
#pragma once

#include "mge/plugin.hpp"

namespace mge::cpu {

extern const mge_strategy_api kStrategyApi;

}  // namespace mge::cpu
