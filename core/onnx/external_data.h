// SPDX-License-Identifier: Apache-2.0
// Tensors whose bytes are in other files than the model. The files' names come from the model and are not trusted.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/contained_file.h"
#include "core/base/source_file.h"
#include "core/base/tensor.h"
#include "core/onnx/reader.h"

namespace mge::onnx {

// The keys and values of TensorProto.external_data.
using ExternalEntries = std::vector<std::pair<std::string_view, std::string_view>>;

// Opens each file once, and only files in the folders of the model (OpenContained). Errors: kExternalData, which names the
// tensor and the file, and the errors of `allocator`.
class ExternalFiles {
 public:
  // Without folders, Read() fails for all external data but that of `in_memory`, which must outlive this object.
  ExternalFiles(DataFolders folders, std::span<const MemoryFile> in_memory)
      : folders_(std::move(folders)), in_memory_(in_memory) {}

  absl::StatusOr<Tensor> Read(const ExternalEntries& entries, std::string_view tensor, DType dtype, const Shape& shape,
                              HostAllocator& allocator);
  // Returns whether a tensor that was read has a checksum. Checksums are optional in ONNX and are not checked.
  bool has_checksums() const { return has_checksums_; }

 private:
  bool has_checksums_ = false;
  DataFolders folders_;
  std::span<const MemoryFile> in_memory_;
  std::unordered_map<std::string, std::shared_ptr<const SourceFile>> opened_;
};

// Creates a tensor from `bytes`. The caller must have checked their number. The tensor is a view of the bytes, which keeps
// `owner` alive, if `may_view` is true and the address is aligned for the type. Else it is a copy. Fails with kInvalidTensor
// if a bool is neither 0 nor 1.
absl::StatusOr<Tensor> TensorFromRaw(DType dtype, const Shape& shape, Bytes bytes, bool may_view,
                                     const std::shared_ptr<const void>& owner, HostAllocator& allocator);

// Creates a tensor from the bytes of a file that begin at `offset`. The caller must have checked their number. A large tensor
// is lazy. Fails with kFileAccess, and like TensorFromRaw().
absl::StatusOr<Tensor> TensorFromFile(DType dtype, const Shape& shape, std::shared_ptr<const SourceFile> file,
                                      int64_t offset, HostAllocator& allocator);

}  // namespace mge::onnx
