// SPDX-License-Identifier: Apache-2.0
// Changes of a model that keep it a model: another attribute, shape, type or wiring, as an exporter with a fault would
// write it. What a change does follows from the random numbers alone.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/proto_tree.h"

namespace mge::fuzz {

using Random = std::mt19937_64;  // the same numbers on every machine

// Makes one change somewhere, and says which; `operators` are names that a node may get. "" if the place that was drawn
// offered nothing.
std::string Mutate(Message& model, const std::vector<std::string>& operators, Random& random);

}  // namespace mge::fuzz
