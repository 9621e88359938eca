// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLSTM on the CPU backend.
#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "under_test.h"

namespace mge::testing {
namespace {

struct Quantized {
  int64_t steps, batch, input, hidden;
  const char* direction = "forward";
  DType weights = DType::kI8;
  bool by_column = false;
  std::vector<int> constants = {1, 2, 3, 8, 9, 10, 11};
  std::vector<double> lengths = {};
};

Case CaseOf(const Quantized& q) {
  const int64_t d = q.direction == std::string("bidirectional") ? 2 : 1, columns = 4 * q.hidden;
  const double scale = 1 / (64 * std::sqrt(static_cast<double>(q.hidden))), zero = q.weights == DType::kI8 ? 0 : 119;
  auto floats = [&](Shape shape, double range, uint64_t seed) {
    return Random(DType::kF32, std::move(shape), -range, range, seed);
  };
  auto weights = [&](int64_t k, uint64_t seed) { return Random(q.weights, {d, k, columns}, zero - 100, zero + 100, seed); };
  const Shape one = q.by_column ? Shape{d, columns} : Shape{d};
  Tensor scales = Random(DType::kF32, one, scale / 2, scale, 7), zeros = Random(q.weights, one, zero, zero, 8);
  Tensor lengths;
  if (!q.lengths.empty()) lengths = Fill(DType::kI32, {q.batch}, q.lengths);
  Case c =
      OneNode("DynamicQuantizeLSTM",
              {floats({q.steps, q.batch, q.input}, 2, 1), weights(q.input, 2), weights(q.hidden, 3),
               floats({d, 2 * columns}, 1, 4), lengths, floats({d, q.batch, q.hidden}, 1, 5),
               floats({d, q.batch, q.hidden}, 1, 6), Tensor(), scales, zeros, scales, zeros},
              With({{"hidden_size", q.hidden}, {"direction", std::string(q.direction)}}), q.constants, 3, "com.microsoft");
  c.name = std::string("DynamicQuantizeLSTM ") + q.direction;
  return c;
}

// Returns a tolerance of one quantization step. An error of the last bit may round a state up instead of down.
Tolerance OfRounding(DType) { return {2e-3, 1e-3}; }

TEST(DynamicQuantizeLstm, SupportsEveryFormOfWeightsAndScales) {
  OnEveryMachine([](Backend& backend) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (DType weights : {DType::kI8, DType::kU8}) {
        for (bool by_column : {false, true})
          backend.Check(CaseOf({4, 3, 10, 37, direction, weights, by_column}), OfRounding);
      }
    }
    backend.Check(CaseOf({4, 3, 10, 37, "bidirectional", DType::kU8, true, {}}), OfRounding);
    backend.Check(CaseOf({4, 3, 10, 37, "forward", DType::kI8, false, {1, 2}}), OfRounding);
    backend.Check(CaseOf({4, 3, 10, 37, "reverse", DType::kI8, false, {1, 2, 8, 9, 10, 11}, {4, 0, 2}}), OfRounding);
    backend.Check(CaseOf({4, 3, 10, 37, "forward", DType::kI8, false, {1, 2, 8, 9, 10, 11}, {3, 1, 2}}), OfRounding);
    backend.Check(CaseOf({12, 20, 40, 128, "forward"}), OfRounding);
  });
}

}  // namespace
}  // namespace mge::testing
