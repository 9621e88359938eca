// SPDX-License-Identifier: Apache-2.0
// Reading and writing of NumPy's .npy and .npz files. Pickles are never read: object arrays fail with
// kUnsupportedType.
//
// Element types: bool, integers, floats of 16 to 64 bits, complex, and unicode text. Column-major
// and big-endian arrays are converted. The format has no name for bfloat16: reading '<V2' fails,
// and writing converts to float32. Errors: kFileAccess, kBadInputFile (with the place in the file),
// kUnsupportedType, kLimit, kFileWrite, and the errors of `allocator`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/npz_names.h"
#include "core/base/tensor.h"

namespace mge {

// Reads one array. `place` is the file's name for messages. The tensor refers to `bytes` only if `owner` is given, which then
// keeps them alive, and if it needs no conversion.
absl::StatusOr<Tensor> ReadNpyBytes(Bytes bytes, std::string_view place, HostAllocator& allocator = UnlimitedHostAllocator(),
                                    /*nullable*/ const std::shared_ptr<const void>& owner = nullptr);
absl::StatusOr<Tensor> ReadNpy(const std::string& path, HostAllocator& allocator = UnlimitedHostAllocator());

// The arrays of an archive with their names ("x" for the member "x.npy"), in the archive's order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
struct NpzLimits {
  int64_t max_members = 10'000;
  int64_t max_total_bytes = int64_t{16} << 30;  // total of all arrays, unpacked
};
absl::StatusOr<NamedTensors> ReadNpzBytes(Bytes bytes, std::string_view place, const NpzLimits& limits = {},
                                          HostAllocator& allocator = UnlimitedHostAllocator());
absl::StatusOr<NamedTensors> ReadNpz(const std::string& path, const NpzLimits& limits = {},
                                     HostAllocator& allocator = UnlimitedHostAllocator());

// Reads one array. If `name` is "", the archive must hold exactly one. Fails with kBadInputFile if there is no such array.
absl::StatusOr<Tensor> ReadNpzArray(Bytes bytes, std::string_view place, const std::string& name,
                                    const NpzLimits& limits = {}, HostAllocator& allocator = UnlimitedHostAllocator());

// Writes format 1.0, little-endian, row-major.
absl::StatusOr<std::string> NpyBytes(const Tensor& tensor);
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace mge
