// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/trial_inputs.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace mge {
namespace {

// Fills the tensor with values that are not zero and not all equal, if `fill` permits that.
void FillSeeded(Tensor& tensor, uint64_t seed, const TrialFill& fill) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<int>(state >> 40 & 0xff);
  };
  auto real = [&] {
    const float x = (static_cast<float>(next() - 128) / 128.0f + 0.002f) * fill.reach;
    return fill.positive ? std::fabs(x) : x;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float specials[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
  DispatchFixedSize(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    size_t i = 0;
    for (T& x : tensor.MutableData<T>()) {
      const size_t turn = i++ % 4;
      if constexpr (kIsFloating<T>) {
        x = static_cast<T>(fill.special && turn < 3 ? specials[turn] : real());
      } else if (fill.integers == TrialFill::Integers::kWide && !std::is_same_v<T, bool>) {
        x = static_cast<T>(static_cast<int>(real()));
      } else if (fill.integers == TrialFill::Integers::kBits || fill.integers == TrialFill::Integers::kWide) {
        x = static_cast<T>(next() & 1);
      } else if (fill.integers == TrialFill::Integers::kPositive) {
        x = static_cast<T>(1 + (next() & 7));
      } else {
        x = static_cast<T>(fill.integers == TrialFill::Integers::kOnes);
      }
    }
  });
}

}  // namespace

absl::StatusOr<std::vector<TrialInput>> MakeInputs(const Graph& graph, const Group& group, const TrialFill& fill) {
  std::vector<TrialInput> inputs;
  for (size_t k = 0; k < group.inputs.size(); ++k) {
    const Value& v = graph.value(group.inputs[k]);
    if (v.role == Role::kConstant) {
      MGE_ASSIGN_OR_RETURN(Tensor held, v.constant.Held());
      inputs.push_back({std::move(held), true});
      continue;
    }
    MGE_ASSIGN_OR_RETURN(Tensor t, Tensor::Create(v.type.dtype, v.type.dims, group.device->host_allocator()));
    FillSeeded(t, fill.seed * 1000 + k + 1, fill);
    inputs.push_back({std::move(t), false});
  }
  return inputs;
}

}  // namespace mge
