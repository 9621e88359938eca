// SPDX-License-Identifier: Apache-2.0
// Runs a model in onnxruntime for comparison, with a Python interpreter that the user names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cli/common.h"
#include "mge/mge.hpp"

namespace mge::cli {

// Returns the script that the Python interpreter runs: onnxruntime_run.py.
std::string_view OnnxRuntimeScript();

struct NamedTensor {
  std::string name;
  Tensor tensor;  // empty for a value that is not a tensor of numbers
};

struct OnnxRuntimeRun {
  std::string python, model;
  std::vector<std::string> input_names;
  std::vector<const Tensor*> inputs;
  std::vector<std::string> outputs;  // names of the returned values, also intermediate ones; empty: the model's outputs
  int threads = 1;
};

// Runs the model. Exchanges files with the script in a private temporary folder, which it removes. Returns 0, or the exit
// code of a reported error.
int RunInOnnxRuntime(const Globals& globals, const OnnxRuntimeRun& run, std::vector<NamedTensor>* results,
                     std::string* version);

}  // namespace mge::cli
