// SPDX-License-Identifier: Apache-2.0
// Single values in ONNX's wire format: the input_0.pb and output_0.pb files of test data.
//
// Such a file does not say whether it holds a tensor, a sequence or an optional; the model that
// reads it does. Errors: kFileAccess, kBadInputFile (names the byte offset), kInvalidTensor,
// kUnsupportedType, kLimit.
#pragma once

#include <string>
#include <string_view>

#include "core/base/file.h"
#include "core/base/tensor.h"

namespace mge::onnx {

struct NamedValue {
  std::string name;  // may be empty
  HostValue value;
};

// Reads a TensorProto, SequenceProto or OptionalProto, as `kind` says. Sizes and element types are
// those of the file: whether they fit the model is for the caller to judge. The value does not
// refer to the file.
absl::StatusOr<NamedValue> ReadValueFile(const std::string& path,
                                         ValueKind kind = ValueKind::kTensor,
                                         HostAllocator& allocator = UnlimitedHostAllocator());
absl::StatusOr<NamedValue> ReadValueBytes(Bytes bytes, ValueKind kind = ValueKind::kTensor,
                                          HostAllocator& allocator = UnlimitedHostAllocator());

// A TensorProto's bytes.
std::string TensorBytes(const Tensor& tensor, std::string_view name);

// Writes a TensorProto. kFileWrite.
absl::Status WriteTensorFile(const std::string& path, const Tensor& tensor, std::string_view name);

}  // namespace mge::onnx
