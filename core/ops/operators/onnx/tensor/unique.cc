// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <complex>
#include <span>

#include "core/ops/families/movement.h"

namespace mge::op_unique {
namespace {

// The compared items: elements, or slices along `axis`. An item consists of `outer` runs of `block` consecutive
// elements.
struct Items {
  int64_t count = 0, outer = 1, block = 1;
  int64_t At(int64_t item, int64_t o) const { return (o * count + item) * block; }
};

template <typename T>
int CompareElements(const T& a, const T& b) {
  if (a < b) return -1;
  if (b < a) return 1;
  if constexpr (kIsFloating<T>) {  // NaN equals NaN and is last
    bool a_nan = a != a, b_nan = b != b;
    return a_nan == b_nan ? 0 : a_nan ? 1 : -1;
  } else {
    return 0;
  }
}
template <typename T>
int CompareElements(const std::complex<T>& a, const std::complex<T>& b) {
  int real = CompareElements(a.real(), b.real());
  return real ? real : CompareElements(a.imag(), b.imag());
}

// Elements whose order is that of 64-bit keys.
template <typename T>
inline constexpr bool kHasKey = std::is_integral_v<T> || kIsFloating<T>;

// Returns a key: equal elements have equal keys, smaller ones a smaller key, NaN the largest.
template <typename T>
uint64_t KeyOf(T x) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  if constexpr (std::is_unsigned_v<T>) {
    return x;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(x)) ^ kSign;
  } else {
    const double value = static_cast<double>(static_cast<Compute<T>>(x)) + 0.0;  // adding 0 makes -0 positive
    if (value != value) return ~uint64_t{0};
    const auto bits = std::bit_cast<uint64_t>(value);
    return bits & kSign ? ~bits : bits | kSign;
  }
}

struct KeyedItem {
  uint64_t key;
  int64_t item;
};

// Sorts by key and keeps the order of equal ones: by each byte of the keys that differs. `other` has as many items. Returns
// the sorted list, which is one of the two.
std::span<KeyedItem> SortByKey(std::span<KeyedItem> items, std::span<KeyedItem> other) {
  uint64_t differs = 0;
  for (const KeyedItem& i : items) differs |= i.key ^ items[0].key;
  for (int shift = 0; shift < 64; shift += 8) {
    if (((differs >> shift) & 255) == 0) continue;
    size_t begin[257] = {};
    for (const KeyedItem& i : items) ++begin[((i.key >> shift) & 255) + 1];
    for (int b = 0; b < 256; ++b) begin[b + 1] += begin[b];
    for (const KeyedItem& i : items) other[begin[(i.key >> shift) & 255]++] = i;
    std::swap(items, other);
  }
  return items;
}

// Calls f(TypeTag<T>{}) for every type.
template <typename F>
void DispatchAny(DType dtype, F&& f) {
  if (dtype == DType::kString) {
    f(TypeTag<std::string>{});
  } else if (dtype == DType::kC64) {
    f(TypeTag<std::complex<float>>{});
  } else if (dtype == DType::kC128) {
    f(TypeTag<std::complex<double>>{});
  } else {
    DispatchFixedSize(dtype, f);
  }
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  TensorType list = RankedType(DType::kI64, 1);
  TensorType inverse = list;
  if (!ctx.attrs().Has("axis")) {
    ctx.SetOutput(0, RankedType(x.dtype, 1));
    if (x.has_rank && IsStatic(x.dims)) {
      MGE_ASSIGN_OR_RETURN(inverse.dims[0], NumElements(x.dims));
    }
  } else if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
  } else {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.dims.size()));
    Shape dims = x.dims;
    inverse.dims[0] = dims[axis];
    dims[axis] = kUnknownDim;
    ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
  }
  ctx.SetOutput(1, list);
  ctx.SetOutput(2, std::move(inverse));
  ctx.SetOutput(3, list);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  Tensor x = ctx.input(0);
  int64_t axis = 0;
  if (ctx.attrs().Has("axis")) {
    MGE_ASSIGN_OR_RETURN(axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  } else {
    x = x.Reshaped({x.elements()});
  }
  Items items{x.shape()[axis], Product(x.shape(), 0, axis), Product(x.shape(), axis + 1, x.rank())};
  const int64_t n = items.count;

  MGE_ASSIGN_OR_RETURN(Tensor order_tensor, Scratch<int64_t>(ctx, n));
  MGE_ASSIGN_OR_RETURN(Tensor group_tensor, Scratch<int64_t>(ctx, n));  // group of an item, in sorted order
  MGE_ASSIGN_OR_RETURN(Tensor first_tensor, Scratch<int64_t>(ctx, n));  // first item of a group
  auto order = order_tensor.MutableData<int64_t>();
  auto group = group_tensor.MutableData<int64_t>();
  auto first = first_tensor.MutableData<int64_t>();
  int64_t groups = 0;
  const bool single = items.outer == 1 && items.block == 1;
  MGE_ASSIGN_OR_RETURN(Tensor keyed_tensor, Scratch<int64_t>(ctx, single ? 4 * n : 0));
  auto* keyed = reinterpret_cast<KeyedItem*>(keyed_tensor.MutableData<int64_t>().data());
  DispatchAny(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto in = x.Data<T>();
    if constexpr (kHasKey<T>) {
      if (single) {
        for (int64_t i = 0; i < n; ++i) keyed[i] = {KeyOf(in[i]), i};
        const auto size = static_cast<size_t>(n);
        std::span<KeyedItem> sorted = SortByKey({keyed, size}, {keyed + n, size});
        for (size_t i = 0; i < size; ++i) {
          if (i == 0 || sorted[i].key != sorted[i - 1].key) first[groups++] = sorted[i].item;
          group[sorted[i].item] = groups - 1;
        }
        return;
      }
    }
    auto compare = [&](int64_t a, int64_t b) {
      for (int64_t o = 0; o < items.outer; ++o) {
        for (int64_t k = 0; k < items.block; ++k) {
          int c = CompareElements(in[items.At(a, o) + k], in[items.At(b, o) + k]);
          if (c) return c;
        }
      }
      return 0;
    };
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      int c = compare(a, b);
      return c ? c < 0 : a < b;
    });
    for (int64_t i = 0; i < n; ++i) {
      if (i == 0 || compare(order[i - 1], order[i]) != 0) first[groups++] = order[i];
      group[order[i]] = groups - 1;
    }
  });

  if (ctx.attrs().Int("sorted") == 0) {  // numbers the groups by their first appearance
    MGE_ASSIGN_OR_RETURN(Tensor renamed_tensor, Scratch<int64_t>(ctx, groups));
    auto renamed = renamed_tensor.MutableData<int64_t>();
    std::sort(first.begin(), first.begin() + groups);
    for (int64_t g = 0; g < groups; ++g) renamed[group[first[g]]] = g;
    for (int64_t i = 0; i < n; ++i) group[i] = renamed[group[i]];
  }

  Shape shape = x.shape();
  shape[axis] = groups;
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  Items out{groups, items.outer, items.block};
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o < items.outer; ++o) {
      CopyElements(x, items.At(first[g], o), *y, out.At(g, o), items.block);
    }
  }
  if (ctx.has_output(1)) {
    MGE_ASSIGN_OR_RETURN(Tensor * indices, ctx.Output(1, DType::kI64, {groups}));
    std::copy_n(first.begin(), groups, indices->MutableData<int64_t>().begin());
  }
  if (ctx.has_output(2)) {
    MGE_ASSIGN_OR_RETURN(Tensor * inverse, ctx.Output(2, DType::kI64, {n}));
    std::copy_n(group.begin(), n, inverse->MutableData<int64_t>().begin());
  }
  if (ctx.has_output(3)) {
    MGE_ASSIGN_OR_RETURN(Tensor * counts, ctx.Output(3, DType::kI64, {groups}));
    Fill(*counts, nullptr);
    for (int64_t i = 0; i < n; ++i) ++counts->MutableData<int64_t>()[group[i]];
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(unique) = {.name = "Unique",
                  .doc = "The distinct elements (or slices along `axis`), sorted or in order of appearance.",
                  .inputs = {{"X", kFixedSize | kStrings | kComplex}},
                  .outputs = {{"Y"},
                              {"indices", {}, Arity::kOptional},
                              {"inverse_indices", {}, Arity::kOptional},
                              {"counts", {}, Arity::kOptional}},
                  .attrs = {AxisOf({"axis", AttrType::kInt, Presence::kOptional, "absent: the input is flattened"}),
                            {"sorted", 1, "not 0: the results are sorted"}},
                  .infer = Infer,
                  .eval = Eval,
                  .traits = kDynamicShape,
                  .since = 11};

}  // namespace mge::op_unique
