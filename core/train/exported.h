// SPDX-License-Identifier: Apache-2.0
// Finds changes by exporters of PyTorch that make a model train in another way. sdk/python/README.md has the recipe for users.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/onnx/reader.h"
#include "core/train/restore_export.h"

namespace mge {

// Returns, by value, whether it is an initializer that PyTorch does not train:
// - a number of the code, such as the scale of an attention, with a name that no parameter has, such as "val_12"
// - the mask of an attention, which has elements of -1e30 or less
// - the scale and bias that stand for none: of an InstanceNormalization in a group_norm; the zeros in which an LSTM, GRU or RNN begins
// - a buffer, by the notes of the exporter
std::vector<bool> ExportedConstants(const onnx::Model& model);

// Returns texts for the user about what may differ from the model as it trains in PyTorch. `trained`: the parameters of its training
// step; `model` is without one, and `restored` is what RestoreExported() has returned for it.
std::vector<std::string> ExportWarnings(const onnx::Model& model, std::span<const std::string> trained,
                                        const RestoredExport& restored);

}  // namespace mge
