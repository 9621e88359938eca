// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

#include "core/ops/op_helpers.h"

namespace mge {
namespace {

template <typename T>
void CopyRegionOf(const T* src, std::span<const int64_t> src_strides, T* dst, std::span<const int64_t> dst_strides,
                  std::span<const int64_t> extents) {
  if (extents.empty()) {
    *dst = *src;
    return;
  }
  size_t last = extents.size() - 1;
  Shape index(extents.size(), 0);
  int64_t s = 0, d = 0;
  while (true) {
    const int64_t n = extents[last], ss = src_strides[last], ds = dst_strides[last];
    for (int64_t i = 0; i < n; ++i) dst[d + i * ds] = src[s + i * ss];
    size_t axis = last;
    while (true) {
      if (axis == 0) return;
      --axis;
      s += src_strides[axis];
      d += dst_strides[axis];
      if (++index[axis] < extents[axis]) break;
      s -= src_strides[axis] * extents[axis];
      d -= dst_strides[axis] * extents[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

void CopyRegion(const Tensor& src, int64_t src_offset, std::span<const int64_t> src_strides, Tensor& dst, int64_t dst_offset,
                std::span<const int64_t> dst_strides, std::span<const int64_t> extents) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return;
  DispatchCopy(src.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    CopyRegionOf<T>(static_cast<const T*>(src.data()) + src_offset, src_strides,
                    static_cast<T*>(dst.mutable_data()) + dst_offset, dst_strides, extents);
  });
}

void CopyStrided(const Tensor& src, int64_t src_offset, std::span<const int64_t> src_strides, Tensor& dst) {
  Shape dst_strides = Strides(dst.shape());
  Shape extents = dst.shape();
  CopyRegion(src, src_offset, src_strides, dst, 0, dst_strides, extents);
}

void CopyElements(const Tensor& src, int64_t src_at, Tensor& dst, int64_t dst_at, int64_t count) {
  if (count == 0 || (src.data() == dst.data() && src_at == dst_at)) return;
  if (src.dtype() == DType::kString) {
    std::copy_n(src.Data<std::string>().begin() + src_at, count, dst.MutableData<std::string>().begin() + dst_at);
    return;
  }
  int64_t size = ElementBytes(src.dtype());
  std::memmove(static_cast<std::byte*>(dst.mutable_data()) + dst_at * size,
               static_cast<const std::byte*>(src.data()) + src_at * size, count * size);
}

void Fill(Tensor& dst, const Tensor* value) {
  DispatchCopy(dst.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T element = value ? value->Data<T>()[0] : T();
    std::span<T> out = dst.MutableData<T>();
    std::fill(out.begin(), out.end(), element);
  });
}

absl::Status IndexError(const EvalContext& ctx, std::string_view what, int64_t index, int64_t bound) {
  return Fail(errors::kIndexOutOfRange, fmt::format("{} {} is outside of [{}, {})", what, index, -bound, bound),
              {.what = fmt::format("the indexed dimension has size {}", bound), .where = NodePlace(ctx.node())});
}

std::optional<Ints> KnownInts(const InferContext& ctx, int i) {
  if (!ctx.has_input(i)) return std::nullopt;
  const Tensor* t = ctx.constant(i);
  constexpr int64_t kLongest = 1 << 16;  // shapes are shorter; the evaluator checks longer lists
  const TensorType& type = ctx.input(i);
  if (!(kInteger | kBoolean).Contains(t ? t->dtype() : type.dtype)) return std::nullopt;
  if (!t && type.has_rank && type.dims == Shape{0}) return Ints();  // an empty list has no unknown elements
  if (!t || t->elements() > kLongest) return std::nullopt;
  return t->ToInts();
}

absl::StatusOr<Ints> IntsInput(const EvalContext& ctx, int i, int64_t limit) {
  const Tensor& t = ctx.input(i);
  if (t.rank() > 1) {
    return ctx.Invalid(fmt::format("input {} has shape {}; a vector is expected", i, ShapeText(t.shape())));
  }
  if (t.elements() > limit) {
    return ctx.Invalid(fmt::format("input {} has {} elements; at most {} are allowed", i, t.elements(), limit));
  }
  return t.ToInts();
}

absl::StatusOr<Shape> CheckedShape(const Ints& dims) {
  if (static_cast<int64_t>(dims.size()) > kMaxRank) {
    return BadNode(fmt::format("a shape of {} dimensions; at most {} are supported", dims.size(), kMaxRank));
  }
  for (int64_t d : dims) {
    if (d < 0) return BadNode(fmt::format("shape {} has the negative size {}", ShapeText(dims), d));
  }
  return Shape(dims.begin(), dims.end());
}

TensorType RankedType(DType dtype, int64_t rank) { return MakeType(dtype, Shape(rank, kUnknownDim)); }

TensorType Common(const TensorType& a, const TensorType& b) {
  DType dtype = a.dtype == b.dtype ? a.dtype : DType::kUndefined;
  if (!a.has_rank || !b.has_rank || a.dims.size() != b.dims.size()) return UnrankedType(dtype);
  Shape dims = a.dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != b.dims[i]) dims[i] = kUnknownDim;
  }
  TensorType out = MakeType(dtype, std::move(dims));
  if (a.symbols == b.symbols) out.symbols = a.symbols;
  return out;
}

bool MergeDim(int64_t* dim, int64_t other) {
  if (*dim == kUnknownDim) *dim = other;
  return other == kUnknownDim || *dim == other;
}

void SetConstantInput(Graph& graph, Node& node, int slot, std::string_view stem, Tensor tensor) {
  ValueId id = graph.AddTemporary(fmt::format("{}.{}", node.name, stem), MakeType(tensor.dtype(), tensor.shape()));
  Value& value = graph.value(id);
  value.role = Role::kConstant;
  value.constant = std::move(tensor);
  if (static_cast<int>(node.inputs.size()) <= slot) node.inputs.resize(slot + 1, kNone);
  node.inputs[slot] = id;
}

void MoveAttributeToInput(Graph& graph, Node& node, std::string_view name, int slot) {
  const AttributeValue* value = node.attrs.Find(name);
  if (!value) return;
  Tensor tensor;
  if (const auto* i = std::get_if<int64_t>(value)) {
    tensor = Tensor::Scalar<int64_t>(*i);
  } else if (const auto* ints = std::get_if<Ints>(value)) {
    tensor = Tensor::Vector<int64_t>(*ints);
  } else if (const auto* f = std::get_if<float>(value)) {
    tensor = Tensor::Scalar<float>(*f);
  } else if (const auto* floats = std::get_if<Floats>(value)) {
    tensor = Tensor::Vector<float>(*floats);
  } else {
    return;  // wrong kind of attribute: the schema check reports it
  }
  SetConstantInput(graph, node, slot, name, std::move(tensor));
  node.attrs.Remove(name);
}

}  // namespace mge
