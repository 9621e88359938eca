// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as .npy, .npz and .pb. An array read as .npy must be equal after it was written and read again.
#include <cstdio>
#include <cstdlib>

#include "core/base/npy.h"
#include "core/onnx/tensor_file.h"
#include "tests/support/read_and_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mge;  // NOLINT
  auto check = [](const absl::Status& status) {
    if (status.ok() || (ErrorId(status) != 0 && ErrorId(status) != errors::kInternal.id)) return;
    std::fprintf(stderr, "%s\n", FormatError(status).c_str());
    std::abort();
  };
  Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  BoundedAllocator allocator(16 << 20);
  auto npy = ReadNpyBytes(bytes, "fuzz.npy", allocator);
  check(npy.status());
  if (npy.ok()) {
    auto written = NpyBytes(*npy);
    check(written.status());
    if (written.ok()) {
      auto back = ReadNpyBytes(AsBytes(*written), "again.npy", allocator);
      check(back.status());
      if (back.ok() && (back->dtype() != npy->dtype() || back->shape() != npy->shape())) std::abort();
    }
  }
  check(ReadNpzBytes(bytes, "fuzz.npz", {.max_members = 100, .max_total_bytes = 16 << 20}, allocator).status());
  for (ValueKind kind : {ValueKind::kTensor, ValueKind::kSequence, ValueKind::kOptional, ValueKind::kOptionalSequence,
                         ValueKind::kMap, ValueKind::kMapSequence}) {
    check(onnx::ReadValueBytes(bytes, kind, allocator).status());
  }
  return 0;
}
