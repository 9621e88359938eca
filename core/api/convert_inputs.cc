// SPDX-License-Identifier: Apache-2.0
#include "core/api/convert_inputs.h"

#include <algorithm>

#include "core/ops/families/convert.h"
#include "core/plugin/device_tensor.h"

namespace mge::api {
namespace {

constexpr TypeSet kIntegers = {DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                               DType::kU8, DType::kU16, DType::kU32, DType::kU64};

absl::StatusOr<Tensor> Converted(const Tensor& from, DType type) {
  MGE_ASSIGN_OR_RETURN(Tensor to, Tensor::Create(type, from.shape()));
  DispatchNumeric(from.dtype(), [&](auto from_tag) {
    DispatchNumeric(type, [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      const auto all = from.Data<From>();
      std::ranges::transform(all, to.MutableData<To>().begin(), [](From x) { return Convert<To>(x); });
    });
  });
  return to;
}

}  // namespace

absl::Status ConvertInputs(const Session& session, std::span<HostValue> inputs) {
  const std::vector<ValueId>& declared = session.graph().inputs();
  for (size_t i = 0; i < std::min(inputs.size(), declared.size()); ++i) {
    const Tensor& given = inputs[i].tensor;
    if (inputs[i].kind != ValueKind::kTensor || !given.defined() || !DeviceMemory::OnHost(given)) continue;
    const DType from = given.dtype(), to = session.graph().value(declared[i]).type.dtype;
    const bool floats = kFloating.Contains(from) && kFloating.Contains(to);
    if (from == to || !(floats || (kIntegers.Contains(from) && kIntegers.Contains(to)))) continue;
    MGE_ASSIGN_OR_RETURN(inputs[i].tensor, Converted(given, to));
  }
  return absl::OkStatus();
}

}  // namespace mge::api
