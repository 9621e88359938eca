// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model: read, verify, infer, run once. Nothing but a documented error may come of
// it.
#include <cstdio>
#include <cstdlib>

#include "tests/support/read_and_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bool promise_kept = true;
  absl::Status status =
      mge::ReadAndRun({reinterpret_cast<const std::byte*>(data), size}, &promise_kept);
  if (!promise_kept) {
    std::fprintf(stderr, "%s\n", mge::FormatError(status).c_str());
    std::abort();
  }
  return 0;
}
