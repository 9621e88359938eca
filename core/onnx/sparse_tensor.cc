// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/onnx/fields.h"
#include "core/onnx/tensor_proto.h"
#include "fmt/format.h"

namespace mge::onnx {

absl::StatusOr<NamedTensor> TensorDecoder::Sparse(Bytes message) const {
  Bytes values_bytes, indices_bytes;
  Ints dims;
  WireReader reader(source_, "SparseTensorProto", message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::sparse::kValues: values_bytes = reader.Message(); break;
      case field::sparse::kIndices: indices_bytes = reader.Message(); break;
      case field::sparse::kDims: reader.AppendInts(dims); break;
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  MGE_ASSIGN_OR_RETURN(NamedTensor values, Dense(values_bytes));
  MGE_ASSIGN_OR_RETURN(NamedTensor indices, Dense(indices_bytes));
  auto invalid = [&](std::string what) {
    return Fail(errors::kInvalidTensor, fmt::format("sparse tensor '{}' is invalid", values.name),
                {.what = std::move(what), .where = source_.place});
  };
  Shape shape(dims.begin(), dims.end());
  int64_t rank = static_cast<int64_t>(shape.size());
  DType dtype = values.tensor.dtype();
  if (rank > kMaxRank) return invalid(fmt::format("it has rank {}; the limit is {}", rank, kMaxRank));
  if (dtype == DType::kString) return invalid("its elements are strings");
  absl::StatusOr<int64_t> bytes = NumBytes(dtype, shape);
  if (!bytes.ok()) return invalid(ErrorTitle(bytes.status()));
  if (*bytes > kMaxDensifiedBytes) {
    return Fail(errors::kLimit, fmt::format("sparse tensor '{}' is too large", values.name),
                {.what = fmt::format("it has {} bytes as a dense tensor; the limit is {}", *bytes, kMaxDensifiedBytes),
                 .where = source_.place});
  }
  int64_t n = values.tensor.elements();
  bool linear = indices.tensor.rank() == 1;
  Shape wanted = linear ? Shape{n} : Shape{n, rank};
  if (values.tensor.rank() != 1 || indices.tensor.dtype() != DType::kI64 || indices.tensor.shape() != wanted) {
    return invalid(fmt::format("values {} need int64 indices [{}] or [{},{}], got {}{}", ShapeText(values.tensor.shape()), n,
                               n, rank, DTypeName(indices.tensor.dtype()), ShapeText(indices.tensor.shape())));
  }
  MGE_ASSIGN_OR_RETURN(Tensor dense, Tensor::Create(dtype, shape, allocator_));
  if (*bytes > 0) std::memset(dense.mutable_data(), 0, static_cast<size_t>(*bytes));
  Shape strides = Strides(shape);
  int64_t width = ElementBytes(dtype);
  auto at = indices.tensor.Data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    int64_t offset = 0;
    if (linear) {
      if (at[i] < 0 || at[i] >= dense.elements()) return invalid(fmt::format("index {} is outside of it", at[i]));
      offset = at[i];
    }
    for (int64_t d = 0; !linear && d < rank; ++d) {
      int64_t index = at[i * rank + d];
      if (index < 0 || index >= shape[d]) {
        return invalid(fmt::format("index {} is outside of dimension {} of {}", index, d, shape[d]));
      }
      offset += index * strides[d];
    }
    std::memcpy(static_cast<std::byte*>(dense.mutable_data()) + offset * width,
                static_cast<const std::byte*>(values.tensor.data()) + i * width, static_cast<size_t>(width));
  }
  return NamedTensor{values.name, std::move(dense)};
}

}  // namespace mge::onnx
