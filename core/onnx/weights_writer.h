// SPDX-License-Identifier: Apache-2.0
// Writes a copy of a model with other weights: after a training, for example.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/tensor.h"

namespace mge::onnx {

// The form of the nodes of a written model. kInference: each BatchNormalization uses its running mean and variance, and Dropout is
// an Identity, also in the model's functions. A Dropout whose mode is an input of the graph stays. Bodies of control flow stay.
enum class NodeForm { kUnchanged, kInference };

// A parameter that the written model has beside those of the file. It becomes input `input` of the node of the main graph whose
// first output is `output`. An Identity with the output `name` is left out.
struct AddedParameter {
  std::string name;
  std::string output;
  size_t input = 0;
};

// Writes `model`, the bytes of an ONNX file, to `path`, with the elements of the initializers that `weights` names replaced.
// Everything else stays as it is, bit for bit, except for nodes that `form` changes. The types and shapes must be those of
// the model. The file is written completely or not at all. `model_directory` is the folder of the model, to which external
// data is relative: initializers that stay there can be read from the same folder only. Fails with kFileWrite; with kLimit
// if the file would be larger than 2 GiB; with kMalformedModel; and with kBadInput if neither the main graph nor `added` has
// an initializer of a name.
absl::Status WriteWithWeights(Bytes model, const std::map<std::string, Tensor>& weights, const std::string& path,
                              const std::string& model_directory, NodeForm form = NodeForm::kUnchanged,
                              const std::vector<AddedParameter>& added = {});

}  // namespace mge::onnx
