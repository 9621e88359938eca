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
  // All outlive the decoder. Without `external`, tensors with external data are refused. With
  // `may_view`, tensors refer to the source's bytes where alignment allows.
  TensorDecoder(const WireSource& source, /*nullable*/ ExternalFiles* external,
                HostAllocator& allocator, bool may_view)
      : source_(source), external_(external), allocator_(allocator), may_view_(may_view) {}

  // kInvalidTensor names the tensor: expected and present sizes, two kinds of data, values outside
  // of the type.
  absl::StatusOr<NamedTensor> Dense(Bytes message) const;

  // What Dense() will have to hold.
  struct Size {
    std::string_view name;
    int64_t bytes;
  };
  absl::StatusOr<Size> SizeOf(Bytes message) const;

  // A sparse tensor as a dense one, of at most kMaxDensifiedBytes.
  absl::StatusOr<NamedTensor> Sparse(Bytes message) const;

 private:
  const WireSource& source_;
  ExternalFiles* external_;
  HostAllocator& allocator_;
  bool may_view_;
};

inline constexpr int64_t kMaxDensifiedBytes = int64_t{1} << 30;

// TensorProto.DataType to an element type. kUnsupportedType names what exists but is not
// implemented.
absl::StatusOr<DType> ElementType(int64_t data_type);

}  // namespace mge::onnx
