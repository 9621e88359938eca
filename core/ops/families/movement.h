// SPDX-License-Identifier: Apache-2.0
// Helpers of the operators that move, index or create data: strided copies, checked indices, integer inputs.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/ops/infer_checks.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {

// Calls f(TypeTag<T>{}), where T has the element's size and can be copied. T is std::string for strings.
template <typename F>
void DispatchCopy(DType dtype, F&& f) {
  if (dtype == DType::kString) {
    f(TypeTag<std::string>{});
  } else {
    MGE_CHECK(DispatchBytes(dtype, f));
  }
}

// Copies dst[dst_offset + Σ i·dst_strides] = src[src_offset + Σ i·src_strides] for every multi-index i of `extents`.
// Strides are in elements and may be 0 or negative. The caller guarantees that all accesses are inside of the tensors.
void CopyRegion(const Tensor& src, int64_t src_offset, std::span<const int64_t> src_strides, Tensor& dst, int64_t dst_offset,
                std::span<const int64_t> dst_strides, std::span<const int64_t> extents);

// Does the same into all elements of `dst`, in row-major order.
void CopyStrided(const Tensor& src, int64_t src_offset, std::span<const int64_t> src_strides, Tensor& dst);

// Copies `count` consecutive elements.
void CopyElements(const Tensor& src, int64_t src_at, Tensor& dst, int64_t dst_at, int64_t count);

// Sets every element to the one element of `value`, or to zero, false or "" if `value` is null.
void Fill(Tensor& dst, /*nullable*/ const Tensor* value);

// A view of an int32 or int64 tensor that returns its elements as int64. The tensor must outlive it.
class IndexView {
 public:
  explicit IndexView(const Tensor& t) : data_(t.data()), wide_(t.dtype() == DType::kI64) {}
  int64_t operator[](int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }

 private:
  const void* data_;
  bool wide_;
};

// Maps an index in [-bound, bound) to [0, bound). Fails with kIndexOutOfRange; the error names the node, the index and
// the bound.
absl::Status IndexError(const EvalContext& ctx, std::string_view what, int64_t index, int64_t bound);
inline absl::Status CheckIndex(const EvalContext& ctx, std::string_view what, int64_t bound, int64_t* index) {
  if (*index < -bound || *index >= bound) return IndexError(ctx, what, *index, bound);
  if (*index < 0) *index += bound;
  return absl::OkStatus();
}

// Returns the elements of integer input `i` if the shape rule knows them.
std::optional<Ints> KnownInts(const InferContext& ctx, int i);

// Returns the elements of integer input `i`. Fails unless it is a scalar or a vector of at most `limit` elements.
absl::StatusOr<Ints> IntsInput(const EvalContext& ctx, int i, int64_t limit = kMaxRank);

// Returns the sizes as a shape. Fails if a size is negative or there are more than kMaxRank.
absl::StatusOr<Shape> CheckedShape(const Ints& dims);

// Returns a type of known rank with unknown sizes.
TensorType RankedType(DType dtype, int64_t rank);

// Returns the type that holds for both: element type, rank and sizes that differ become unknown.
TensorType Common(const TensorType& a, const TensorType& b);

// Replaces `*dim` by `other` if it is unknown. Returns false if both are known and differ.
bool MergeDim(int64_t* dim, int64_t other);

// Moves attribute `name` to constant input `slot`, for `upgrade` functions. Accepts int, ints, float and floats. Does
// nothing if the attribute is absent.
void MoveAttributeToInput(Graph& graph, Node& node, std::string_view name, int slot);
// Sets input `slot` of the node to a new constant.
void SetConstantInput(Graph& graph, Node& node, int slot, std::string_view stem, Tensor tensor);

// Returns the product of dims[begin, end).
inline int64_t Product(std::span<const int64_t> dims, int64_t begin, int64_t end) {
  return Elements(dims.subspan(begin, end - begin));
}

inline HostValue TensorValue(Tensor tensor) {
  HostValue value;
  value.tensor = std::move(tensor);
  return value;
}

}  // namespace mge
