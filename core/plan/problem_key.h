// SPDX-License-Identifier: Apache-2.0
// Names of problems: equal for equal problems on devices on which equal choices are right, in every process.
#pragma once

#include <cstdint>
#include <string>

#include "core/plugin/devices.h"
#include "mge/plugin.h"

namespace mge {

struct ProblemKey {
  std::string choice;  // what a choice is a function of: problem, device class, the backend's set of candidates
  // What measured times hold for: that, how results are checked, what was asked of candidates, the very build of the
  // backend, and the driver.
  std::string timing;
  std::string text;    // in words: "Conv+Relu float32[1,3,8,8] float32[4,3,3,3] with 8 threads"
};

// Hex digits. Names of nodes and values do not count, nor the values of weights.
ProblemKey KeyOf(const Device& device, const mge_problem& problem, uint64_t require, uint64_t forbid);

}  // namespace mge
