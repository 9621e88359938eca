// SPDX-License-Identifier: Apache-2.0
// Definitions of core_classes.h, in a source file that includes only the core's headers.
#include "tests/core/api/core_classes.h"

#include <numeric>

#include "core/engine/run_control.h"
#include "core/engine/session.h"

namespace mge {

std::array<const std::type_info*, 6> CoreClasses() {
  return {&typeid(Tensor),         &typeid(Runtime),        &typeid(Session),
          &typeid(RuntimeOptions), &typeid(SessionOptions), &typeid(RunControl)};
}

float SumOfCoreTensor(int n) {
  Tensor tensor = *Tensor::Create(DType::kF32, {n});
  auto data = tensor.MutableData<float>();
  std::iota(data.begin(), data.end(), 1.0f);
  return std::accumulate(data.begin(), data.end(), 0.0f);
}

}  // namespace mge
