// SPDX-License-Identifier: Apache-2.0
// Reads each mutant and runs it once on the reference evaluators, with limited memory. It must succeed or fail with a
// documented error.
#include "tests/fuzz/mutants.h"
#include "tests/support/read_and_run.h"
#include "tests/support/small_models.h"

int main(int argc, char** argv) {
  mge::fuzz::Options options;
  if (!mge::fuzz::ParseOptions(argc, argv, &options)) return 2;
  std::vector<mge::fuzz::Model> models;
  for (auto& [name, bytes] : mge::onnx_builder::SmallModels()) models.push_back({name, bytes});
  return mge::fuzz::TryMutants(options, std::move(models), [](const mge::fuzz::Mutant& mutant) -> std::string {
    bool promise_kept = true;
    absl::Status status = mge::ReadAndRun(mge::AsBytes(mutant.bytes), &promise_kept);
    return promise_kept ? "" : mge::FormatError(status);
  });
}
