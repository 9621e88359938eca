// SPDX-License-Identifier: Apache-2.0
// Models for the tests of the public C++ API, whose classes have the core's names: they are built in a file of their own.
#pragma once

#include <string>

namespace mge::api_models {

// x[batch,2] -> Relu -> t -> Neg -> y; and z = weights[i], which fails where i is not 0 or 1. With metadata author=me.
std::string TwoOutputs();

}  // namespace mge::api_models
