// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM in the types that only the kernels of plugins/gpu have.
#include <tuple>

#include "gtest/gtest.h"
#include "under_test.h"

namespace mge::testing {
namespace {

Tolerance OfSteps(DType t) {
  Tolerance r = ToleranceOf(t, 8);
  r.absolute *= 4;
  return r;
}

TEST(GpuRecurrent, SupportsEveryFloatingType) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kF64, DType::kF16, DType::kBF16}) {
      for (auto [op, gates, outputs] : {std::tuple("RNN", 1, 2), {"GRU", 3, 2}, {"LSTM", 4, 3}}) {
        backend.Check(OneNode(op,
                              {Random(t, {3, 2, 5}, -1, 1, 1), Random(t, {2, gates * 9, 5}, -0.5, 0.5, 2),
                               Random(t, {2, gates * 9, 9}, -0.5, 0.5, 3), Random(t, {2, 2 * gates * 9}, -0.5, 0.5, 4)},
                              With({{"hidden_size", int64_t{9}}, {"direction", std::string("bidirectional")}}), {}, outputs),
                      OfSteps);
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
