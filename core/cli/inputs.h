// SPDX-License-Identifier: Apache-2.0
// The inputs of a run, read from files or generated.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cli/common.h"
#include "mge/mge.hpp"

namespace mge::cli {

// The options --input, --shape and --seed.
struct InputOptions {
  std::vector<std::string> files;   // "NAME=FILE", or a file for the next input
  std::vector<std::string> shapes;  // "NAME=1x3x224x224", or a shape for the next input
  uint64_t seed = 0;
  bool say = true;  // describes generated inputs on stderr
  void Declare(Arguments app);
};

// Sets `runs` to the options of each run. A shape may have a list of sizes, such as data=1x3x64..96x64: run k has the k-th
// size. Inputs without a list have the same shape in all runs. There is one run if no shape has a list. Only the first one says
// what it generates. Returns 0, or the exit code of a usage error.
int EachRun(const Globals& globals, const InputOptions& options, std::vector<InputOptions>* runs);

// The origin of each input.
struct InputFacts {
  Json rows = Json::array();  // the rows of "mge.inputs/1"
  bool made_up = false;       // at least one input was generated
  int variant = 0;            // mge_example_options::variant of the generated inputs
};

// Reads the inputs that the options name, generates the others, and describes those on stderr. If an option is wrong,
// reports it and sets *usage_error to the exit code.
Status MakeInputs(const Globals& globals, const Session& session, const InputOptions& options, std::vector<Tensor>* out,
                  int* usage_error, InputFacts* facts = nullptr);

// Calls MakeInputs and does the first run by calling `run`. If the model fails for generated values or returns NaN, tries
// other values.
Status MakeInputsAndRun(const Globals& globals, Session& session, const InputOptions& options,
                        const std::function<Status(const std::vector<Tensor>& inputs)>& run,
                        const std::vector<Tensor>& outputs, std::vector<Tensor>* inputs, int* usage_error,
                        InputFacts* facts);

// Does the same with a plain run of the session, without the facts.
Status MakeInputsAndRun(const Globals& globals, Session& session, const InputOptions& options, std::vector<Tensor>* outputs,
                        std::vector<Tensor>* inputs, int* usage_error);

std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors);

}  // namespace mge::cli
