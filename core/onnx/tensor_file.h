// SPDX-License-Identifier: Apache-2.0
// Single values in ONNX's wire format: the input_0.pb and output_0.pb files of test data.
//
// The file does not tell whether it has a tensor, a sequence or an optional; the caller must know it
// from the model. Errors: kFileAccess, kBadInputFile (with the byte offset), kInvalidTensor,
// kUnsupportedType, kLimit, and the errors of `allocator`.
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

// Reads a TensorProto, SequenceProto or OptionalProto, depending on `kind`. Sizes and element types are
// those of the file; the caller must check that they match the model. The value does not refer to
// the file.
absl::StatusOr<NamedValue> ReadValueFile(const std::string& path, ValueKind kind = ValueKind::kTensor,
                                         HostAllocator& allocator = UnlimitedHostAllocator());
// `place` is the name of the bytes for messages.
absl::StatusOr<NamedValue> ReadValueBytes(Bytes bytes, ValueKind kind = ValueKind::kTensor,
                                          HostAllocator& allocator = UnlimitedHostAllocator(), std::string_view place = {});

// Returns the bytes of a TensorProto.
std::string TensorBytes(const Tensor& tensor, std::string_view name);

// Writes a TensorProto. Errors: kFileWrite.
absl::Status WriteTensorFile(const std::string& path, const Tensor& tensor, std::string_view name);

}  // namespace mge::onnx
