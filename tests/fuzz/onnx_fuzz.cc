// SPDX-License-Identifier: Apache-2.0
// Treats any bytes as a model: reads, verifies, infers types and runs once. It must succeed or fail with a documented error.
#include <cstdio>
#include <cstdlib>

#include "tests/support/read_and_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bool promise_kept = true;
  absl::Status status = mge::ReadAndRun({reinterpret_cast<const std::byte*>(data), size}, &promise_kept);
  if (!promise_kept) {
    std::fprintf(stderr, "%s\n", mge::FormatError(status).c_str());
    std::abort();
  }
  return 0;
}
