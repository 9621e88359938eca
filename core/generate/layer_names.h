// SPDX-License-Identifier: Apache-2.0
// Names of inputs and outputs with the number of a layer in place of "%d".
#pragma once

#include <string>
#include <string_view>

namespace mge {

// Returns the layer's number as text if `name` is `pattern` with a number in place of "%d", else "".
std::string LayerOf(std::string_view name, std::string_view pattern);
// Returns the pattern with the layer's number; a pattern without "%d" is unchanged.
std::string WithLayer(std::string pattern, const std::string& layer);

}  // namespace mge
