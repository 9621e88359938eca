// SPDX-License-Identifier: Apache-2.0
#include <complex>

#include "core/ops/families/movement.h"

namespace mge::op_non_zero {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  ctx.SetOutput(0, MakeType(DType::kI64, {x.has_rank ? static_cast<int64_t>(x.dims.size()) : kUnknownDim, kUnknownDim}));
  return absl::OkStatus();
}

// Calls f(i) for every element i that is not zero, false or "".
template <typename F>
void ForEachNonZero(const Tensor& x, F f) {
  auto scan = [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto in = x.Data<T>();
    for (size_t i = 0; i < in.size(); ++i) {
      bool zero;
      if constexpr (std::is_same_v<T, std::string>) {
        zero = in[i].empty();
      } else {
        zero = in[i] == T();
      }
      if (!zero) f(static_cast<int64_t>(i));
    }
  };
  if (x.dtype() == DType::kString) {
    scan(TypeTag<std::string>{});
  } else if (x.dtype() == DType::kC64) {
    scan(TypeTag<std::complex<float>>{});
  } else if (x.dtype() == DType::kC128) {
    scan(TypeTag<std::complex<double>>{});
  } else {
    DispatchFixedSize(x.dtype(), scan);
  }
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  int64_t count = 0;
  ForEachNonZero(x, [&](int64_t) { ++count; });
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, {x.rank(), count}));
  auto out = y->MutableData<int64_t>();
  Shape strides = Strides(x.shape());
  int64_t n = 0;
  ForEachNonZero(x, [&](int64_t i) {
    for (int64_t d = 0; d < x.rank(); ++d) {
      out[d * count + n] = i / strides[d];
      i %= strides[d];
    }
    ++n;
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(non_zero) = {.name = "NonZero",
                    .doc = "Coordinates of the elements that are not zero, one column per element.",
                    .inputs = {{"X", kFixedSize | kStrings | kComplex}},
                    .outputs = {{"Y"}},
                    .infer = Infer,
                    .eval = Eval,
                    .traits = kDynamicShape,
                    .since = 9};

}  // namespace mge::op_non_zero
