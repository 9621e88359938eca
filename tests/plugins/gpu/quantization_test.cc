// SPDX-License-Identifier: Apache-2.0
// Operators of quantized models. Their results are equal to those of the reference evaluators in every bit.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kF16, DType::kBF16};

// Returns values over a range that is wider than that of the type.
Tensor Real(DType t, Shape shape) { return Random(t, std::move(shape), -400, 400); }
// Returns values over the range of a quantized type.
Tensor Quantized(DType t, Shape shape, uint64_t seed = 1) {
  const bool is_signed = t == DType::kI8 || t == DType::kI16 || t == DType::kI32;
  return Random(t, std::move(shape), is_signed ? -128 : 0, is_signed ? 127 : 255, seed);
}

// Runs every candidate. Expects that there is one.
std::vector<std::string> Candidates(Backend& backend, const Case& c) {
  Backend::Outcome outcome = backend.Check(c, Exactly);
  EXPECT_THAT(outcome.candidates, ::testing::Not(::testing::IsEmpty()))
      << c.name << ": " << ::testing::PrintToString(outcome.refusals);
  return outcome.candidates;
}

TEST(Quantization, QuantizesEveryTypeAndSize) {
  OnEveryMachine([](Backend& backend) {
    for (DType to : {DType::kU8, DType::kI8, DType::kU16, DType::kI16}) {
      for (DType from : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32}) {
        for (DType scale : kFloats) {
          for (int64_t n : {0, 1, 7, 64, 1003}) {
            Candidates(backend, OneNode("QuantizeLinear", {Real(from, {n}), Fill(scale, {}, {0.37}), Quantized(to, {})}));
          }
        }
      }
    }
    Candidates(backend, OneNode("QuantizeLinear", {Real(DType::kF32, {70}), Fill(DType::kF32, {1}, {1.5})}));
  });
}

TEST(Quantization, DequantizesEveryTypeAndSize) {
  OnEveryMachine([](Backend& backend) {
    for (DType from : {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32}) {
      for (DType to : kFloats) {
        for (int64_t n : {0, 1, 7, 64, 1003}) {
          Candidates(backend,
                     OneNode("DequantizeLinear", {Quantized(from, {n}), Fill(to, {}, {0.37}), Quantized(from, {}, 2)}));
        }
      }
    }
    const Tensor large = Fill(DType::kI32, {3}, {-2147483648.0, 2147483647, 16777217});
    Candidates(backend,
               OneNode("DequantizeLinear", {large, Fill(DType::kF32, {}, {1}), Fill(DType::kI32, {}, {2147483647})}));
    Candidates(backend, OneNode("DequantizeLinear", {Quantized(DType::kI32, {70}), Fill(DType::kF32, {}, {1.5})}));
    Candidates(backend, OneNode("DequantizeLinear", {Quantized(DType::kU8, {70}), Fill(DType::kF32, {}, {0.3})},
                                With({{"output_dtype", static_cast<int64_t>(DType::kF16)}})));
  });
}

TEST(Quantization, RoundsHalvesToEvenAndSaturates) {
  const Tensor x = Fill(DType::kF32, {14},
                        {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 1e10, -1e10, INFINITY, -INFINITY, NAN, 127.5, 254.5});
  OnEveryMachine([&](Backend& backend) {
    for (DType t : {DType::kU8, DType::kI8, DType::kU16, DType::kI16}) {
      for (double zero : {0, 1, 100}) {
        Candidates(backend, OneNode("QuantizeLinear", {x, Fill(DType::kF32, {}, {1}), Fill(t, {}, {zero})}));
      }
    }
    Candidates(backend, OneNode("QuantizeLinear", {x, Fill(DType::kF32, {}, {0}), Fill(DType::kU8, {}, {3})}));
  });
}

TEST(Quantization, DividesInTheTypeOfTheScaleOrOfTheAttribute) {
  OnEveryMachine([&](Backend& backend) {
    for (DType scale : kFloats) {
      for (DType precision : kFloats) {
        Candidates(backend,
                   OneNode("QuantizeLinear",
                           {Random(DType::kF32, {300}, -9000, 9000), Fill(scale, {}, {1.1}), Fill(DType::kI16, {}, {-7})},
                           With({{"precision", static_cast<int64_t>(precision)}})));
      }
    }
  });
}

// Packs of neighbouring elements with one scale, with several, and with the last and the first scale of the axis.
TEST(Quantization, HasScalesPerAxis) {
  OnEveryMachine([](Backend& backend) {
    for (const Shape& shape : {Shape{2, 3, 5, 7}, {1, 16, 4, 4}, {3, 1, 2, 2}, {4, 5, 3, 1}}) {
      for (int64_t axis = -1; axis < 4; ++axis) {
        const int64_t count = shape[static_cast<size_t>(axis < 0 ? 3 : axis)];
        const Attributes attrs = With({{"axis", axis}});
        const Tensor scale = Random(DType::kF32, {count}, 0.5, 3);
        const Case q = OneNode("QuantizeLinear", {Real(DType::kF32, shape), scale, Quantized(DType::kI8, {count})}, attrs);
        const Case dq =
            OneNode("DequantizeLinear", {Quantized(DType::kU8, shape), scale, Quantized(DType::kU8, {count})}, attrs);
        for (const Case& c : {q, dq}) {
          EXPECT_THAT(Candidates(backend, c), ::testing::ElementsAre("gpu.elementwise", "gpu.elementwise.nhwc")) << c.name;
        }
      }
    }
  });
}

TEST(Quantization, HasScalesPerBlock) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t axis = 0; axis < 3; ++axis) {
      for (int64_t block : {1, 2, 5, 100}) {
        Shape scales = {4, 10, 3};
        int64_t& along = scales[static_cast<size_t>(axis)];
        along = (along + block - 1) / block;
        const Attributes attrs = With({{"axis", axis}, {"block_size", block}});
        const Tensor scale = Random(DType::kF32, scales, 0.5, 3);
        Candidates(backend,
                   OneNode("QuantizeLinear", {Real(DType::kF32, {4, 10, 3}), scale, Quantized(DType::kU8, scales)}, attrs));
        Candidates(backend, OneNode("DequantizeLinear", {Quantized(DType::kI32, {4, 10, 3}), scale}, attrs));
      }
    }
  });
}

TEST(Quantization, FindsTheRangeOfTheData) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t n : {0, 1, 5, 1000, 30001}) {
      for (auto [low, high] : {std::pair<double, double>{-2, 3}, {1, 4}, {-4, -1}, {0, 0}}) {
        Candidates(backend, OneNode("DynamicQuantizeLinear", {Random(DType::kF32, {n}, low, high)}, {}, {}, 3));
      }
    }
    const Tensor odd = Fill(DType::kF32, {2, 3}, {1, NAN, -0.0, 1e-40, 3e38, -2});
    Candidates(backend, OneNode("DynamicQuantizeLinear", {odd}, {}, {}, 3));
    EXPECT_THAT(Candidates(backend, OneNode("DynamicQuantizeLinear", {Random(DType::kF32, {2, 3, 5, 7})}, {}, {}, 3)),
                ::testing::ElementsAre("gpu.quantize", "gpu.quantize.nhwc"));
  });
}

// Both ends are 8-bit integers, and one in the middle. Scales are one, or of the last axis.
TEST(Quantization, IsPartOfChains) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kU8, DType::kI8}) {
      for (const Shape& scales : {Shape{}, Shape{7}}) {
        const Attributes last = With({{"axis", int64_t{-1}}});
        const Tensor scale = Random(DType::kF32, scales, 0.5, 2), zero = Quantized(t, scales, 3);
        Case c = OneNode("DequantizeLinear", {Quantized(t, {2, 3, 5, 7}), scale, zero}, last);
        Then(c, "Add", {Random(DType::kF32, {3, 1, 1}, -50, 50, 2)}, {}, false);
        Then(c, "QuantizeLinear", {scale, zero}, last);
        Then(c, "DequantizeLinear", {scale}, last);
        const ValueId middle = c.graph.outputs()[0];
        Then(c, "Relu");
        Then(c, "QuantizeLinear", {Fill(DType::kF32, {}, {1.5})});
        EXPECT_THAT(backend.Claims(c),
                    ::testing::Contains("elementwise_chain: DequantizeLinear Add QuantizeLinear DequantizeLinear Relu "
                                        "QuantizeLinear"));
        EXPECT_THAT(Candidates(backend, c), ::testing::ElementsAre("gpu.chain", "gpu.chain.nhwc"));
        c.graph.outputs().push_back(middle);
        EXPECT_THAT(Candidates(backend, c), ::testing::ElementsAre("gpu.chain", "gpu.chain.nhwc"));
      }
    }
    Case halves = OneNode("QuantizeLinear", {Real(DType::kF16, {70}), Fill(DType::kF16, {}, {2})});
    Then(halves, "DequantizeLinear", {Fill(DType::kF16, {}, {2})});
    EXPECT_THAT(backend.Claims(halves), ::testing::IsEmpty());
    Case channels = OneNode("QuantizeLinear", {Real(DType::kF32, {2, 3, 4}), Random(DType::kF32, {3}, 0.5, 2)});
    Then(channels, "DequantizeLinear", {Random(DType::kF32, {3}, 0.5, 2)});
    EXPECT_THAT(backend.Claims(channels), ::testing::IsEmpty());
  });
}

constexpr DType kBytes[] = {DType::kU8, DType::kI8};
const std::vector<int> kVariable, kSecond = {1}, kFourth = {3};

TEST(MatMulInteger, ComputesEveryRemainderOfRowsColumnsAndTerms) {
  OnEveryMachine([](Backend& backend) {
    for (DType left : kBytes) {
      for (DType right : kBytes) {
        for (auto [m, k, n] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                               {3, 4, 5},
                               {64, 64, 64},
                               {65, 67, 66},
                               {7, 130, 68},
                               {70, 16, 3},
                               {5, 200, 64}}) {
          for (const std::vector<int>& constants : {kVariable, kSecond}) {
            const Tensor a = Quantized(left, {m, k}), b = Quantized(right, {k, n}, 2);
            const auto candidates = Candidates(backend, OneNode("MatMulInteger", {a, b}, {}, constants));
            if (constants == kSecond) {
              EXPECT_THAT(candidates, ::testing::ElementsAre("gpu.matmul.integer", "gpu.matmul.integer.mma"));
            }
            Candidates(backend,
                       OneNode("MatMulInteger", {a, b, Quantized(left, {}, 3), Quantized(right, {1}, 4)}, {}, constants));
            Candidates(backend,
                       OneNode("MatMulInteger", {a, b, Quantized(left, {m}, 3), Quantized(right, {n}, 4)}, {}, constants));
          }
        }
      }
    }
  });
}

// Enough for large tiles of matrix units.
TEST(MatMulInteger, OfManyTilesComputesThemAll) {
  for (DType left : kBytes) {
    const Case c = OneNode("MatMulInteger",
                           {Quantized(left, {1290, 90}), Quantized(DType::kI8, {90, 1270}, 2), Quantized(left, {1290}, 3),
                            Quantized(DType::kI8, {1270}, 4)},
                           {}, kSecond);
    EXPECT_THAT(Candidates(UnderTest(), c), ::testing::Contains("gpu.matmul.integer.mma"));
  }
}

TEST(MatMulInteger, BatchesAndZeroPointsBroadcast) {
  constexpr DType kA = DType::kU8, kB = DType::kI8;
  struct Form {
    Shape a, b, a_zero, b_zero;
  };
  const Form kForms[] = {{{3, 5, 7}, {7, 9}, {}, {9}},
                         {{3, 5, 7}, {7, 9}, {5}, {}},
                         {{3, 5, 7}, {7, 9}, {3, 5, 1}, {1, 9}},
                         {{3, 5, 7}, {7, 9}, {3, 1, 1}, {1, 1}},
                         {{3, 5, 7}, {7, 9}, {5, 1}, {9}},
                         {{3, 5, 7}, {3, 7, 9}, {3, 5, 1}, {3, 1, 9}},
                         {{5, 7}, {3, 7, 9}, {5, 1}, {3, 1, 9}},
                         {{2, 1, 5, 7}, {3, 7, 9}, {2, 1, 5, 1}, {3, 1, 1}},
                         {{1, 4, 5, 7}, {2, 1, 7, 9}, {1, 4, 1, 1}, {2, 1, 1, 9}},
                         {{7}, {7, 9}, {}, {9}},
                         {{2, 5, 7}, {7}, {5}, {}},
                         {{7}, {7}, {1}, {}},
                         {{4, 1, 7}, {7, 3}, {4, 1, 1}, {}}};
  OnEveryMachine([&](Backend& backend) {
    for (const Form& f : kForms) {
      for (const std::vector<int>& constants : {kVariable, kSecond}) {
        Candidates(backend, OneNode("MatMulInteger",
                                    {Quantized(kA, f.a), Quantized(kB, f.b, 2), Quantized(kA, f.a_zero, 3),
                                     Quantized(kB, f.b_zero, 4)},
                                    {}, constants));
      }
    }
    // Zero points that differ along k are left to the reference evaluator.
    const Case whole = OneNode("MatMulInteger", {Quantized(kA, {5, 7}), Quantized(kB, {7, 9}), Quantized(kA, {5, 7})});
    EXPECT_THAT(backend.Offers(whole).candidates, ::testing::IsEmpty());
  });
}

TEST(MatMulInteger, GivesZerosIfThereIsNothingToSum) {
  OnEveryMachine([](Backend& backend) {
    for (auto [a, b] : {std::pair<Shape, Shape>{{3, 0}, {0, 4}}, {{0, 4}, {4, 5}}, {{3, 4}, {4, 0}}, {{0, 3, 4}, {4, 5}}}) {
      Candidates(backend, OneNode("MatMulInteger", {Quantized(DType::kU8, a), Quantized(DType::kU8, b)}));
    }
  });
}

TEST(MatMulInteger, SumsOfTheLargestFactorsWrapAroundExactly) {
  const Tensor most = Fill(DType::kU8, {1, 70000}, std::vector<double>(70000, 255)),
               least = Fill(DType::kI8, {70000, 1}, std::vector<double>(70000, -128));
  for (const Case& c : {OneNode("MatMulInteger", {most, least, Fill(DType::kU8, {}, {0}), Fill(DType::kI8, {}, {127})}),
                        OneNode("MatMulInteger", {most, least, Fill(DType::kU8, {}, {255})})}) {
    Candidates(UnderTest(), c);
  }
}

// A scale of all columns, found in the run, or of each; a bias or none; and constant and variable factors.
TEST(MatMulInteger, IsOneKernelWithCastScaleAndBias) {
  constexpr DType kU8 = DType::kU8, kI8 = DType::kI8;
  OnEveryMachine([](Backend& backend) {
    for (const Shape& scale : {Shape{}, Shape{1}, Shape{70}}) {
      for (const std::vector<int>& constants : {kVariable, kSecond}) {
        Case c =
            OneNode("MatMulInteger",
                    {Quantized(kU8, {2, 35, 67}), Quantized(kI8, {67, 70}, 2), Fill(kU8, {}, {117}), Fill(kI8, {}, {3})}, {},
                    constants);
        Then(c, "Cast", {}, With({{"to", static_cast<int64_t>(DType::kF32)}}));
        Then(c, "Mul", {Random(DType::kF32, scale, 0.01, 0.02, 5)}, {}, scale.empty());
        EXPECT_THAT(backend.Claims(c), ::testing::Contains("integer_product: MatMulInteger Cast Mul"));
        const std::vector<std::string> candidates = Candidates(backend, c);
        EXPECT_THAT(candidates, ::testing::Contains("gpu.matmul.integer"));
        EXPECT_EQ(candidates.size(), constants == kSecond ? 2u : 1u);
        Then(c, "Add", {Random(DType::kF32, {70}, -9, 9, 6)});
        EXPECT_THAT(backend.Claims(c), ::testing::Contains("integer_product: MatMulInteger Cast Mul Add"));
        Candidates(backend, c);
      }
    }
    Case rows = OneNode("MatMulInteger", {Quantized(kU8, {5, 67}), Quantized(kI8, {67, 70}, 2)});
    Then(rows, "Cast", {}, With({{"to", static_cast<int64_t>(DType::kF32)}}));
    Then(rows, "Mul", {Random(DType::kF32, {5, 1})});
    for (const std::string& claim : backend.Claims(rows))
      EXPECT_EQ(claim.find("integer_product"), std::string::npos) << claim;
  });
}

// Returns a QLinearMatMul whose results cover the range of their type, and exceed it.
Case QLinearMatMul(DType a, DType b, DType y, DType scale, const Shape& a_shape, const Shape& b_shape,
                   const Shape& of_a = {}, const Shape& of_b = {}, const std::vector<int>& constants = kVariable) {
  return OneNode("QLinearMatMul",
                 {Quantized(a, a_shape), Random(scale, of_a, 0.01, 0.02, 5), Quantized(a, of_a, 6), Quantized(b, b_shape, 2),
                  Random(scale, of_b, 0.01, 0.02, 7), Quantized(b, of_b, 8), Fill(scale, {}, {0.03}), Fill(y, {}, {17})},
                 {}, constants);
}

TEST(QLinearMatMul, RescalesEveryTypeAndSize) {
  OnEveryMachine([](Backend& backend) {
    for (DType a : kBytes) {
      for (DType b : kBytes) {
        for (DType y : kBytes) {
          for (DType scale : kFloats) {
            for (const std::vector<int>& constants : {kVariable, kFourth}) {
              Candidates(backend, QLinearMatMul(a, b, y, scale, {67, 35}, {35, 70}, {}, {}, constants));
              Candidates(backend, QLinearMatMul(a, b, y, scale, {3, 35}, {35, 8}, {3}, {8}, constants));
            }
          }
        }
      }
    }
    constexpr DType kU8 = DType::kU8;
    Candidates(backend, QLinearMatMul(kU8, kU8, kU8, DType::kF32, {2, 3, 20}, {2, 20, 5}, {2, 3, 1}, {2, 1, 5}));
    Candidates(backend, QLinearMatMul(kU8, kU8, kU8, DType::kF32, {2, 3, 20}, {20, 5}, {2, 3, 1}, {5}));
    Candidates(backend, QLinearMatMul(kU8, kU8, kU8, DType::kF32, {2, 3, 20}, {20, 5}, {3}, {5}));
    Candidates(backend, QLinearMatMul(kU8, kU8, kU8, DType::kF32, {20}, {20, 5}));
    Candidates(backend, QLinearMatMul(kU8, kU8, kU8, DType::kF32, {3, 0}, {0, 5}));
  });
}

// A convolution, its filter's shape, and its attributes.
struct Form {
  Shape x, w;
  Attributes attrs = {};
};
// Channels that are and are not multiples of what one access loads, groups, depthwise ones, one to three axes, strides,
// dilations and pads on one side only.
const Form kConvolutions[] = {
    {{2, 3, 7, 6}, {5, 3, 3, 2}, With({{"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}, {"pads", Ints{0, 1, 2, 3}}})},
    {{2, 16, 9, 8}, {70, 16, 3, 3}, With({{"pads", Ints{1, 1, 1, 1}}})},
    {{1, 4, 9, 8}, {8, 4, 3, 3}, With({{"auto_pad", std::string("SAME_LOWER")}})},
    {{2, 20, 5, 6}, {68, 20, 1, 1}},
    {{1, 6, 9, 9}, {10, 3, 2, 3}, With({{"group", int64_t{2}}})},
    {{2, 8, 7, 6}, {8, 1, 3, 2}, With({{"group", int64_t{8}}, {"strides", Ints{2, 1}}, {"pads", Ints{0, 1, 2, 3}}})},
    {{1, 5, 7, 6}, {5, 1, 3, 3}, With({{"group", int64_t{5}}, {"pads", Ints{1, 1, 1, 1}}})},
    {{1, 4, 7, 6}, {8, 1, 3, 3}, With({{"group", int64_t{4}}})},
    {{2, 8, 30}, {5, 8, 4}, With({{"strides", Ints{2}}, {"pads", Ints{1, 2}}})},
    {{1, 8, 3, 6, 5}, {6, 4, 2, 3, 3}, With({{"group", int64_t{2}}, {"pads", Ints{1, 0, 1, 0, 1, 1}}})}};

bool IsDepthwise(const Form& f) { return f.w[0] == f.x[1] && f.w[1] == 1; }

void ExpectEveryKernel(const std::vector<std::string>& candidates, const Form& f, bool constant) {
  using ::testing::Contains;
  EXPECT_THAT(candidates, ::testing::IsSupersetOf({"gpu.conv.integer.product", "gpu.conv.integer.direct"}));
  if (IsDepthwise(f)) {
    EXPECT_THAT(candidates, Contains("gpu.conv.integer.depthwise.nhwc"));
  } else {
    EXPECT_THAT(candidates, Contains("gpu.conv.integer.direct.nhwc"));
    if (constant) {
      EXPECT_THAT(candidates, ::testing::IsSupersetOf({"gpu.conv.integer.product.nhwc", "gpu.conv.integer.mma.nhwc"}));
    }
  }
}

TEST(ConvInteger, ComputesEveryForm) {
  OnEveryMachine([](Backend& backend) {
    for (DType x : kBytes) {
      for (DType w : kBytes) {
        for (const Form& f : kConvolutions) {
          for (const std::vector<int>& constants : {kVariable, kSecond}) {
            const Tensor left = Quantized(x, f.x), right = Quantized(w, f.w, 2);
            ExpectEveryKernel(Candidates(backend, OneNode("ConvInteger", {left, right}, f.attrs, constants)), f,
                              constants == kSecond);
            if (constants == kVariable && x != w) continue;
            for (const Shape& zeros : {Shape{}, {1}, {f.w[0]}}) {
              Candidates(backend, OneNode("ConvInteger", {left, right, Quantized(x, {}, 3), Quantized(w, zeros, 4)}, f.attrs,
                                          constants));
            }
          }
        }
      }
    }
  });
}

// Enough for large tiles of matrix units.
TEST(ConvInteger, OfManyTilesComputesThemAll) {
  const Attributes attrs = With({{"pads", Ints{1, 0, 1, 0}}});
  for (int64_t channels : {3, 16}) {
    const Case c = OneNode("ConvInteger",
                           {Quantized(DType::kU8, {2, channels, 60, 56}), Quantized(DType::kI8, {258, channels, 2, 1}, 2),
                            Fill(DType::kU8, {}, {119})},
                           attrs, kSecond);
    EXPECT_THAT(Candidates(UnderTest(), c), ::testing::Contains("gpu.conv.integer.mma.nhwc"));
  }
}

TEST(QLinearConv, RescalesEveryForm) {
  OnEveryMachine([](Backend& backend) {
    for (DType x : kBytes) {
      for (DType w : kBytes) {
        for (DType y : {x == w ? DType::kU8 : DType::kI8}) {
          for (const Form& f : kConvolutions) {
            for (const Shape& of_w : {Shape{}, {f.w[0]}}) {
              const Tensor scale = Fill(DType::kF32, {}, {0.013});
              std::vector<Tensor> inputs = {Quantized(x, f.x),
                                            scale,
                                            Quantized(x, {}, 3),
                                            Quantized(w, f.w, 2),
                                            Random(DType::kF32, of_w, 0.01, 0.02, 7),
                                            Quantized(w, of_w, 4),
                                            Fill(DType::kF32, {}, {0.03}),
                                            Fill(y, {}, {17})};
              Candidates(backend, OneNode("QLinearConv", inputs, f.attrs, of_w.empty() ? kVariable : kFourth));
              inputs.push_back(Random(DType::kI32, {f.w[0]}, -9999, 9999, 8));
              ExpectEveryKernel(Candidates(backend, OneNode("QLinearConv", inputs, f.attrs, kFourth)), f, true);
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
