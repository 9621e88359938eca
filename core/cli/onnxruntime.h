// SPDX-License-Identifier: Apache-2.0
// Runs a model in onnxruntime, in a Python that the user names, to compare with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cli/common.h"
#include "mge/mge.hpp"

namespace mge::cli {

// The script that the Python runs; onnxruntime_run.py.
std::string_view OnnxRuntimeScript();

struct NamedTensor {
  std::string name;
  Tensor tensor;  // empty: a value that is no tensor of numbers
};

struct OnnxRuntimeRun {
  std::string python, model;
  std::vector<std::string> input_names;
  std::vector<const Tensor*> inputs;
  std::vector<std::string> outputs;  // empty: the model's own; others are added to the model
  int threads = 1;
};

// Returns 0, or the exit code of an error that it has reported. Files lie in a private folder that is removed at the end.
int RunInOnnxRuntime(const Globals& globals, const OnnxRuntimeRun& run, std::vector<NamedTensor>* results, std::string* version);

}  // namespace mge::cli
