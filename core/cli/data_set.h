// SPDX-License-Identifier: Apache-2.0
// Reading of the data folders of ONNX's backend tests: input_0.pb, input_1.pb... and output_0.pb...
#pragma once

#include <string>
#include <vector>

#include "mge/mge.hpp"

namespace mge::cli {

// Reads the inputs and expected outputs. Each file is read as the kind of value that the model declares.
Status ReadDataSet(const Session& session, const std::string& folder, std::vector<Tensor>* inputs,
                   std::vector<Tensor>* outputs);

}  // namespace mge::cli
