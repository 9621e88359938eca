// SPDX-License-Identifier: Apache-2.0
// Shared by the operators that move, index or build data: strided copies, checked indices, integer inputs.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/ops/infer_checks.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {

// Calls f(TypeTag<T>{}) with a type of the element's size that can be copied; std::string for strings.
template <typename F>
void DispatchCopy(DType dtype, F&& f) {
  if (dtype == DType::kString) {
    f(TypeTag<std::string>{});
  } else {
    MGE_CHECK(DispatchBytes(dtype, f));
  }
}

// dst[dst_offset + Σ i·dst_strides] = src[src_offset + Σ i·src_strides] for every multi-index i of `extents`.
// Strides are in elements and may be 0 or negative. The caller has checked that all of it lies inside.
void CopyRegion(const Tensor& src, int64_t src_offset, std::span<const int64_t> src_strides, Tensor& dst,
                int64_t dst_offset, std::span<const int64_t> dst_strides, std::span<const int64_t> extents);

// The same into the whole of `dst`, in order.
void CopyStrided(const Tensor& src, int64_t src_offset, std::span<const int64_t> src_strides, Tensor& dst);

// `count` neighbouring elements.
void CopyElements(const Tensor& src, int64_t src_at, Tensor& dst, int64_t dst_at, int64_t count);

// Every element becomes the one element of `value`; zero, false or "" if it is null.
void Fill(Tensor& dst, /*nullable*/ const Tensor* value);

// Elements of an int32 or int64 tensor, read as int64.
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

// Maps an index in [-bound, bound) to [0, bound). kIndexOutOfRange names the node, the index and the bound.
absl::Status IndexError(const EvalContext& ctx, std::string_view what, int64_t index, int64_t bound);
inline absl::Status CheckIndex(const EvalContext& ctx, std::string_view what, int64_t bound, int64_t* index) {
  if (*index < -bound || *index >= bound) return IndexError(ctx, what, *index, bound);
  if (*index < 0) *index += bound;
  return absl::OkStatus();
}

// kInvalidNode without a place; whoever runs the rule adds it.
absl::Status BadNode(std::string what);

// The elements of integer input i where a shape rule knows them.
std::optional<Ints> KnownInts(const InferContext& ctx, int i);

// The elements of integer input i, a scalar or a vector of at most `limit`.
absl::StatusOr<Ints> IntsInput(const EvalContext& ctx, int i, int64_t limit = kMaxRank);

// A size per dimension: none negative, not more than kMaxRank of them.
absl::StatusOr<Shape> CheckedShape(const Ints& dims);

// A type of known rank and unknown sizes.
TensorType RankedType(DType dtype, int64_t rank);

// What two branches or iterations agree on: unknown where they differ.
TensorType Common(const TensorType& a, const TensorType& b);

// Merges a dimension that two sources know; false if they contradict each other.
bool MergeDim(int64_t* dim, int64_t other);

// For `upgrade`: attribute `name` (an int, ints, a float or floats) becomes constant input `slot`; nothing if absent.
void MoveAttributeToInput(Graph& graph, Node& node, std::string_view name, int slot);
// A constant becomes input `slot`, in place of what is there.
void SetConstantInput(Graph& graph, Node& node, int slot, std::string_view stem, Tensor tensor);

// The product of dims[begin, end) of a tensor.
inline int64_t Product(std::span<const int64_t> dims, int64_t begin, int64_t end) {
  return Elements(dims.subspan(begin, end - begin));
}

inline HostValue TensorValue(Tensor tensor) {
  HostValue value;
  value.tensor = std::move(tensor);
  return value;
}

}  // namespace mge
