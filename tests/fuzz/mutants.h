// SPDX-License-Identifier: Apache-2.0
// Mutants: numbered models of ONNX's tests with one to four changes each. A number gives the same mutant on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mge::fuzz {

struct Model {
  std::string name;
  std::string bytes;
};

struct Mutant {
  std::string about;  // model and changes: "test_relu: a dimension, an element type"
  std::string bytes;
};

// Options of the command line: --count=N, --seconds=S (instead of --count), --seed=N, --only=N (one mutant), --data=DIR.
struct Options {
  int64_t count = 50'000;
  int64_t seconds = 0;
  int64_t seed = 1;
  int64_t only = -1;
  std::string data = "/usr/share/libonnx-testdata/data";
};
bool ParseOptions(int argc, char** argv, Options* out);

// Calls check(mutant) for each mutant, which returns "" or the error that it found. Prints every mutant with an error,
// and the mutant that crashes the process. Returns the exit code. With --only, writes the mutant to mutant.onnx.
int TryMutants(const Options& options, std::vector<Model> more_models, std::string (*check)(const Mutant& mutant));

}  // namespace mge::fuzz
