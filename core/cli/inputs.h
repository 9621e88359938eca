// SPDX-License-Identifier: Apache-2.0
// The inputs of a run: read from files, or made up and said so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cli/common.h"
#include "mge/mge.hpp"

namespace mge::cli {

// --input, --shape and --seed.
struct InputOptions {
  std::vector<std::string> files;   // "NAME=FILE", or a file for the next input
  std::vector<std::string> shapes;  // "NAME=1x3x224x224", or a shape for the next input
  uint64_t seed = 0;
  void Declare(CLI::App& app);
};

// How each input came about: rows of "mge.inputs/1".
struct InputFacts {
  Json rows = Json::array();
  bool made_up = false;  // at least one
  int variant = 0;       // of mge_example_options
};

// Reads the inputs that the options name and makes up the others, which it says on stderr. A wrong option is reported, and its
// exit code is in *usage_error.
Status MakeInputs(const Globals& globals, const Session& session, const InputOptions& options, std::vector<Tensor>* out,
                  int* usage_error, InputFacts* facts = nullptr);

// MakeInputs and the first run, done by `run`. If the model refuses made-up values or gives NaN for them, tries other values.
Status MakeInputsAndRun(const Globals& globals, Session& session, const InputOptions& options,
                        const std::function<Status(const std::vector<Tensor>& inputs)>& run, const std::vector<Tensor>& outputs,
                        std::vector<Tensor>* inputs, int* usage_error, InputFacts* facts);

// The same for commands that run the session as it is and do not say in their data how inputs came about.
Status MakeInputsAndRun(const Globals& globals, Session& session, const InputOptions& options, std::vector<Tensor>* outputs,
                        std::vector<Tensor>* inputs, int* usage_error);

std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors);

}  // namespace mge::cli
