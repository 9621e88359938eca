// SPDX-License-Identifier: Apache-2.0
// Finds changes by exporters of PyTorch that make a model train in another way. sdk/python/README.md has the recipe for users.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/onnx/reader.h"

namespace mge {

// Returns whether an initializer is a number that PyTorch's exporter has made of the code, such as the scale of an attention:
// a tensor of one element with a name that no parameter has, such as "val_12". It is not trained.
bool IsExportedNumber(const onnx::Model& model, ValueId initializer);

// Returns texts for the user about what may differ from the model as it trains in PyTorch. `trained`: the parameters of its training
// step; `model` is without one.
std::vector<std::string> ExportWarnings(const onnx::Model& model, std::span<const std::string> trained);

}  // namespace mge
