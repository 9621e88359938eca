// SPDX-License-Identifier: Apache-2.0
// Decodes TensorProto and SparseTensorProto.
#pragma once

#include <string_view>

#include "core/onnx/external_data.h"
#include "core/onnx/wire.h"

namespace mge::onnx {

struct NamedTensor {
  std::string_view name;  // in the source's bytes
  Tensor tensor;
};

class TensorDecoder {
 public:
  // All arguments must outlive the decoder. If `external` is null, tensors with external data fail. If
  // `may_view` is true, tensors refer to the source's bytes if the alignment allows.
  TensorDecoder(const WireSource& source, /*nullable*/ ExternalFiles* external, HostAllocator& allocator, bool may_view)
      : source_(source), external_(external), allocator_(allocator), may_view_(may_view) {}

  // Decodes a TensorProto. Errors: kInvalidTensor if the size of the data does not match the shape, if there are two kinds of
  // data, or if a value is out of range; those of external data and of the allocator.
  absl::StatusOr<NamedTensor> Dense(Bytes message) const;

  // The name of a tensor, and the bytes that Dense() will return for it.
  struct Size {
    std::string_view name;
    int64_t bytes;
  };
  absl::StatusOr<Size> SizeOf(Bytes message) const;

  // Decodes a SparseTensorProto into a dense tensor of at most kMaxDensifiedBytes.
  absl::StatusOr<NamedTensor> Sparse(Bytes message) const;

  HostAllocator& allocator() const { return allocator_; }

 private:
  const WireSource& source_;
  ExternalFiles* external_;
  HostAllocator& allocator_;
  bool may_view_;
};

inline constexpr int64_t kMaxDensifiedBytes = int64_t{1} << 30;

// Converts TensorProto.DataType. Fails with kInvalidTensor for unknown numbers.
absl::StatusOr<DType> ElementType(int64_t data_type);

}  // namespace mge::onnx
