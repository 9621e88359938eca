// SPDX-License-Identifier: Apache-2.0
// Tensors whose bytes lie in files beside the model. Names come from the model and are not trusted.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/tensor.h"

namespace mge::onnx {

// The keys and values of TensorProto.external_data.
using ExternalEntries = std::vector<std::pair<std::string_view, std::string_view>>;

// Opens files strictly beneath the model's directory (OpenBeneath), each once. Errors are
// kExternalData and name the tensor and the file.
class ExternalFiles {
 public:
  // An empty directory refuses all external data.
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}

  absl::StatusOr<Tensor> Read(const ExternalEntries& entries, std::string_view tensor, DType dtype,
                              const Shape& shape, HostAllocator& allocator);

 private:
  std::string directory_;
  Fd directory_fd_;
  std::unordered_map<std::string, std::shared_ptr<const MappedFile>> mapped_;
};

// A tensor of `bytes`, whose length the caller has checked: a view if `owner` is given and the
// address is aligned for the type, else a copy (after which the pages of `file` are released).
// Refuses bytes that are no bool.
absl::StatusOr<Tensor> TensorFromRaw(DType dtype, const Shape& shape, Bytes bytes, bool may_view,
                                     const std::shared_ptr<const void>& owner,
                                     /*nullable*/ const MappedFile* file, HostAllocator& allocator);

}  // namespace mge::onnx
