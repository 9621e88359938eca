// SPDX-License-Identifier: Apache-2.0
// Keys of problems, for files of choices and times. Two problems have equal keys if the same choice is right for both, in
// every process.
#pragma once

#include <cstdint>
#include <string>

#include "core/plugin/devices.h"
#include "mge/plugin.h"

namespace mge {

// The keys of a problem: hashes in hex digits.
struct ProblemKey {
  std::string choice;  // hash of the problem, the device class and the version of the backend's kernel set
  // Hash of the same, the way in which results are checked, the constraints, the build of the backend, and the driver.
  // Measured times are valid for equal keys only.
  std::string timing;
  std::string text;  // for messages: "Conv+Relu float32[1,3,8,8] float32[4,3,3,3] with 8 threads"
};

// Returns the keys. They do not depend on the names of nodes and values, nor on the values of weights.
ProblemKey KeyOf(const Device& device, const mge_problem& problem, uint64_t require, uint64_t forbid);

// Returns a key that is equal for two problems of one process, on one device and for one candidate, if they differ in shapes
// only. Constants count by their address.
std::string FamilyOf(const Device& device, const mge_problem& problem, const std::string& candidate);

}  // namespace mge
