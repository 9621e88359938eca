// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, alone and in chains.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/plugins/operators/exact.h"
#include "tests/support/chain.h"
#include "under_test.h"

namespace mge::testing {
namespace {

constexpr DType kQuantized[] = {DType::kU8, DType::kI8, DType::kU16, DType::kI16};

Tensor Codes(DType t, Shape shape, uint64_t seed) {
  const bool is_signed = t == DType::kI8 || t == DType::kI16 || t == DType::kI32;
  const double high = t == DType::kU8 || t == DType::kI8 ? 255 : t == DType::kI32 ? 1e9 : 65535;
  return Random(t, std::move(shape), is_signed ? -high / 2 : 0, is_signed ? high / 2 : high, seed);
}

TEST(QuantizeLinear, EveryTypeWithOneScale) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kQuantized) {
      for (DType source : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32}) {
        for (DType scale : {DType::kF32, DType::kF16}) {
          if (scale == DType::kF16 && source != DType::kF16) continue;
          const Tensor x = Random(source, {3, 1100}, -400, 400, 1), s = Fill(scale, {}, {0.25});
          CheckOffered(backend, OneNode("QuantizeLinear", {x, s, Codes(t, {}, 2)}, {}, {1, 2}));
          CheckOffered(backend, OneNode("QuantizeLinear", {x, s, Codes(t, {}, 2)}));
          if (t == DType::kU8) CheckOffered(backend, OneNode("QuantizeLinear", {x, s}));
        }
      }
    }
  });
}

TEST(QuantizeLinear, HalvesRoundToEvenAndTheRestSaturates) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  OnEveryMachine([](Backend& backend) {
    for (DType t : kQuantized) {
      for (double zero : {0.0, 1.0, 100.0}) {
        const Tensor x = Fill(DType::kF32, {19},
                              {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127.5, 128.5, 254.5, 255.5, 1e9, -1e9, 3e38, -3e38,
                               kInfinity, -kInfinity, std::nan(""), -0.0, 0.49999997});
        CheckOffered(backend, OneNode("QuantizeLinear", {x, Fill(DType::kF32, {}, {1}), Fill(t, {}, {zero})}));
      }
    }
  });
}

TEST(QuantizeLinear, NumbersNextToHalves) {  // where a quotient with a wrong last bit gives another integer
  std::vector<double> numbers;
  const Tensor scales = Random(DType::kF32, {40}, 0.001, 3, 1);
  for (int64_t s = 0; s < 40; ++s) {
    const auto scale = static_cast<float>(s == 0 ? std::nextafter(1.0f, 0.0f) : At(scales, s));
    numbers.clear();
    for (int half = -300; half < 300; ++half) {
      float at = (static_cast<float>(half) + 0.5f) * scale;
      for (int k = 0; k < 3; ++k) at = std::nextafter(at, -1e30f);
      for (int k = 0; k < 7; ++k, at = std::nextafter(at, 1e30f)) numbers.push_back(at);
    }
    OnEveryMachine([&](Backend& backend) {
      const Tensor x = Fill(DType::kF32, {static_cast<int64_t>(numbers.size())}, numbers);
      CheckOffered(backend, OneNode("QuantizeLinear", {x, Fill(DType::kF32, {}, {scale}), Fill(DType::kI8, {}, {3})}));
    });
  }
}

TEST(QuantizeLinear, ScalesOutsideOfTheUsualRange) {
  OnEveryMachine([](Backend& backend) {
    for (double scale : {1e-45, 1e-38, 1e-30, 1e-20, 1e20, 1e30, 3e38, 0.0, -0.5}) {
      const Tensor x = Fill(DType::kF32, {9}, {0, 1e-45, -1e-38, 1e-30, 1, -1, 1e20, 3e38, -1e30});
      CheckOffered(backend, OneNode("QuantizeLinear", {x, Fill(DType::kF32, {}, {scale}), Fill(DType::kU8, {}, {3})}));
    }
  });
}

TEST(QuantizeLinear, ScalesPerAxis) {
  OnEveryMachine([](Backend& backend) {
    for (const Shape& shape : {Shape{4, 5, 6, 7}, Shape{2, 5, 300}, Shape{2, 33, 3, 3}}) {
      for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
        for (DType t : {DType::kU8, DType::kI8, DType::kI16}) {
          const Shape n = {shape[static_cast<size_t>(axis)]};
          const Tensor x = Random(DType::kF32, shape, -30, 30, 1), scale = Random(DType::kF32, n, 0.1, 0.3, 2);
          const Attributes attrs = With({{"axis", axis - (axis == 2 ? static_cast<int64_t>(shape.size()) : 0)}});
          CheckOffered(backend, OneNode("QuantizeLinear", {x, scale, Codes(t, n, 3)}, attrs, {1, 2}));
          CheckOffered(backend, OneNode("DequantizeLinear", {Codes(t, shape, 1), scale, Codes(t, n, 3)}, attrs, {1, 2}));
          CheckOffered(backend, OneNode("DequantizeLinear", {Codes(t, shape, 1), scale, Codes(t, n, 3)}, attrs));
        }
      }
    }
  });
}

TEST(DequantizeLinear, EveryTypeWithOneScale) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32}) {
      for (DType scale : {DType::kF32, DType::kF16, DType::kBF16}) {
        const Tensor x = Codes(t, {3, 1100}, 1), s = Fill(scale, {}, {0.25});
        CheckOffered(backend, OneNode("DequantizeLinear", {x, s, Codes(t, {}, 2)}, {}, {1, 2}));
        CheckOffered(backend, OneNode("DequantizeLinear", {x, s, Codes(t, {}, 2)}));
        CheckOffered(backend, OneNode("DequantizeLinear", {x, s}));
      }
    }
  });
}

TEST(DynamicQuantizeLinear, CoversTheRangeOfTheData) {
  OnEveryMachine([](Backend& backend) {
    for (auto [low, high] : {std::pair(-3.0, 2.0), {0.5, 4.0}, {-4.0, -1.0}, {0.0, 0.0}}) {
      for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 7}, Shape{2, 3, 5, 41}, Shape{300, 301}, Shape{0}}) {
        CheckOffered(backend, OneNode("DynamicQuantizeLinear", {Random(DType::kF32, shape, low, high, 1)}, {}, {}, 3));
      }
    }
  });
}

TEST(QuantizedChain, AddsTwoQuantizedTensors) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kU8, DType::kI8}) {
      for (const Shape& shape : {Shape{2, 12, 9, 7}, Shape{1500}}) {
        Case c =
            OneNode("DequantizeLinear", {Codes(t, shape, 1), Fill(DType::kF32, {}, {0.02}), Fill(t, {}, {3})}, {}, {1, 2});
        Then(c, "Add", {Random(DType::kF32, shape, -2, 2, 4)}, {}, false);
        Then(c, "Relu");
        Then(c, "QuantizeLinear", {Fill(DType::kF32, {}, {0.03}), Fill(t, {}, {5})});
        EXPECT_THAT(backend.Claims(c), ::testing::Contains("elementwise_chain: DequantizeLinear Add Relu QuantizeLinear"));
        CheckOffered(backend, c);
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
