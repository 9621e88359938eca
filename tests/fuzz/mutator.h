// SPDX-License-Identifier: Apache-2.0
// Changes a model as a faulty exporter might: another attribute, shape, type or connection. The result is still valid
// protobuf. A change depends only on the random numbers.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/proto_tree.h"

namespace mge::fuzz {

using Random = std::mt19937_64;  // the same numbers on every machine

// Makes one random change. Returns its description, or "" if the chosen place cannot be changed. `operators` are names
// that a node may get.
std::string Mutate(Message& model, const std::vector<std::string>& operators, Random& random);

}  // namespace mge::fuzz
