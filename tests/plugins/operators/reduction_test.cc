// SPDX-License-Identifier: Apache-2.0
// Operators that reduce an axis or a window, including normalisations and softmax.
#include "gtest/gtest.h"
#include "under_test.h"

namespace mge::testing {
namespace {

const DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};

// Returns a tolerance for sums of many terms, because the error of float32 grows with their number.
Tolerance OfSums(DType t) {
  Tolerance r = ToleranceOf(t, 40);
  r.absolute *= 10;
  return r;
}

TEST(Reduction, EveryReductionOverEveryAxis) {
  const char* kOps[] = {"ReduceSum", "ReduceMean", "ReduceMax",    "ReduceMin",       "ReduceProd",
                        "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};
  OnEveryMachine([&](Backend& backend) {
    for (const char* op : kOps) {
      for (DType t : kFloats) {
        for (int64_t keep : {0, 1}) {
          for (std::vector<int64_t> axes : {std::vector<int64_t>{0}, {1}, {-1}, {2, 3}, {0, 2, 3}, {1, 3}, {0, 1, 2, 3}}) {
            backend.Check(OneNode(op, {Random(t, {2, 5, 3, 35}, 0.9, 1.1), Integers(axes)}, With({{"keepdims", keep}}), {1}),
                          OfSums);
          }
        }
      }
      backend.Check(OneNode(op, {Random(DType::kF32, {3, 70}, 0.9, 1.1)}), OfSums);
    }
    for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare"}) {
      for (DType t : {DType::kI32, DType::kI64, DType::kU32}) {
        backend.Check(OneNode(op, {Random(t, {4, 6, 5}, -3, 3), Integers({1})}, {}, {1}), Exactly);
      }
    }
    for (const char* op : kOps) {
      backend.Check(
          OneNode(op, {Random(DType::kF32, {4, 6}, -1, 2), Integers({})}, With({{"noop_with_empty_axes", int64_t{1}}}), {1}),
          Closely);
    }
    backend.Check(OneNode("ReduceSum", {Random(DType::kF32, {4, 0, 3}), Integers({1})}, {}, {1}), Exactly);
    backend.Check(OneNode("ReduceSum", {Random(DType::kF32, {100000}), Integers({0})}, {}, {1}), OfSums);
  });
}

TEST(Reduction, ArgMaxAndArgMin) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kU8}) {
      for (int64_t axis : {0, 1, -1}) {
        for (int64_t last : {0, 1}) {
          UnderTest().Check(OneNode(op, {Random(t, {4, 9, 6}, 0, 3)}, With({{"axis", axis}, {"select_last_index", last}})),
                            Exactly);
        }
      }
    }
  }
}

TEST(Reduction, SoftmaxAlongAnyAxis) {
  OnEveryMachine([](Backend& backend) {
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      for (DType t : kFloats) {
        for (int64_t axis : {0, 1, 2, 3, -1}) {
          backend.Check(OneNode(op, {Random(t, {2, 5, 7, 37}, -9, 9)}, With({{"axis", axis}})), Roughly);
        }
        backend.Check(OneNode(op, {Random(t, {3, 1}, -9, 9)}), Roughly);
        backend.Check(OneNode(op, {Random(t, {0, 4}, -9, 9)}), Roughly);
        backend.Check(OneNode(op, {Random(t, {64, 128}, -90, 90)}), Roughly);
      }
    }
  });
}

TEST(Reduction, Normalisations) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kFloats) {
      Tensor x = Random(t, {2, 6, 4, 35});
      Tensor c = Random(t, {6}, 0.5, 2, 2), d = Random(t, {6}, -1, 1, 3);
      backend.Check(OneNode("LayerNormalization", {x, Random(t, {35}, 0.5, 2), Random(t, {35}, -1, 1, 4)}), OfSums);
      backend.Check(OneNode("LayerNormalization", {x, Random(t, {4, 35}, 0.5, 2)}, With({{"axis", int64_t{2}}})), OfSums);
      backend.Check(OneNode("InstanceNormalization", {x, c, d}), OfSums);
      backend.Check(OneNode("GroupNormalization", {x, c, d}, With({{"num_groups", int64_t{1}}})), OfSums);
      backend.Check(OneNode("GroupNormalization", {x, c, d}, With({{"num_groups", int64_t{3}}})), OfSums);
      backend.Check(OneNode("BatchNormalization", {x, c, d, d, c}), OfSums);
      backend.Check(OneNode("LRN", {x}, With({{"size", int64_t{3}}})), OfSums);
      backend.Check(OneNode("LRN", {x}, With({{"size", int64_t{4}}, {"alpha", 0.5f}})), OfSums);
    }
    Tensor x = Random(DType::kF32, {4, 768});
    backend.Check(OneNode("LayerNormalization", {x, Random(DType::kF32, {768}), Random(DType::kF32, {768})}, {}, {}, 3),
                  OfSums);
  });
}

TEST(Reduction, CumSumAndTopK) {
  for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kI32}) {
    for (int64_t axis : {0, 1, 2}) {
      for (int64_t flag : {0, 1, 2, 3}) {
        UnderTest().Check(OneNode("CumSum", {Random(t, {3, 4, 5}), Fill(DType::kI64, {}, {static_cast<double>(axis)})},
                                  With({{"exclusive", flag & 1}, {"reverse", flag >> 1}}), {1}),
                          Roughly);
        UnderTest().Check(OneNode("TopK", {Random(t, {6, 7, 8}, 0, 5), Integers({3})},
                                  With({{"axis", axis}, {"largest", flag & 1}}), {1}, 2),
                          Exactly);
      }
    }
    UnderTest().Check(OneNode("TopK", {Random(t, {5, 300}, 0, 90), Integers({300})}, {}, {1}, 2), Exactly);
    UnderTest().Check(OneNode("TopK", {Random(t, {5, 30}), Integers({0})}, {}, {1}, 2), Exactly);
  }
}

TEST(Reduction, PoolsWithPadsStridesAndDilation) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kFloats) {
      for (const char* op : {"MaxPool", "AveragePool"}) {
        for (int64_t ceil : {0, 1}) {
          Attributes a =
              With({{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"ceil_mode", ceil}});
          backend.Check(OneNode(op, {Random(t, {2, 5, 9, 37})}, a), Roughly);
          a.Set("dilations", Ints{2, 3});
          backend.Check(OneNode(op, {Random(t, {2, 70, 9, 12})}, a), Roughly);
        }
        for (const char* automatic : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
          backend.Check(
              OneNode(op, {Random(t, {1, 3, 10, 11})},
                      With({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"auto_pad", std::string(automatic)}})),
              Roughly);
        }
        backend.Check(OneNode(op, {Random(t, {1, 3, 40})}, With({{"kernel_shape", Ints{4}}})), Roughly);
        backend.Check(OneNode(op, {Random(t, {1, 3, 5, 6, 7})}, With({{"kernel_shape", Ints{2, 3, 2}}})), Roughly);
      }
      backend.Check(OneNode("AveragePool", {Random(t, {1, 3, 10, 11})},
                            With({{"kernel_shape", Ints{3, 3}},
                                  {"strides", Ints{2, 2}},
                                  {"pads", Ints{1, 1, 1, 1}},
                                  {"ceil_mode", int64_t{1}},
                                  {"count_include_pad", int64_t{1}}})),
                    Roughly);
      backend.Check(OneNode("GlobalAveragePool", {Random(t, {2, 70, 7, 7})}), Roughly);
      backend.Check(OneNode("GlobalMaxPool", {Random(t, {2, 70, 7, 7})}), Exactly);
    }
    backend.Check(OneNode("MaxPool", {Random(DType::kI8, {1, 3, 10, 11}, -90, 90)}, With({{"kernel_shape", Ints{3, 3}}})),
                  Exactly);
    backend.Check(OneNode("MaxPool", {Random(DType::kF32, {1, 2, 3, 3000})},
                          With({{"kernel_shape", Ints{3, 5}}, {"strides", Ints{1, 3}}})),
                  Exactly);
  });
}

TEST(Reduction, PoolsOfBytes) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kU8, DType::kI8}) {
      const double low = t == DType::kU8 ? 0 : -128;
      for (int64_t channels : {1, 3, 31, 64, 150}) {
        for (const Ints& pads : {Ints{0, 0, 0, 0}, Ints{1, 1, 1, 1}}) {
          backend.Check(OneNode("MaxPool", {Random(t, {2, channels, 11, 70}, low, low + 255)},
                                With({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", pads}})),
                        Exactly);
        }
      }
    }
  });
}

TEST(Reduction, PoolsWhoseKernelIsLargerThanTheInput) {
  OnEveryMachine([](Backend& backend) {
    for (const char* op : {"MaxPool", "AveragePool"}) {
      for (int64_t count : {0, 1}) {
        Attributes a = With(
            {{"kernel_shape", Ints{5, 3}}, {"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 0, 0}}, {"ceil_mode", int64_t{1}}});
        if (std::string_view(op) == "AveragePool") a.Set("count_include_pad", count);
        for (int64_t channels : {3, 16}) backend.Check(OneNode(op, {Random(DType::kF32, {2, channels, 3, 2})}, a), Closely);
      }
    }
    backend.Check(OneNode("MaxPool", {Random(DType::kF32, {1, 8, 4, 4})},
                          With({{"kernel_shape", Ints{5, 5}}, {"ceil_mode", int64_t{1}}})),
                  Exactly);
  });
}

TEST(Reduction, PoolsOfImages) {
  Case large = OneNode("MaxPool", {Random(DType::kF32, {1, 64, 60, 57})},
                       With({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}));
  UnderTest().Check(large, Exactly);
  UnderTest().Check(OneNode("MaxPool", {Random(DType::kF32, {1, 64, 60, 57})}, With({{"kernel_shape", Ints{3, 3}}}), {0}),
                    Exactly);
  for (const char* op : {"MaxPool", "AveragePool"}) {
    for (int64_t images : {1, 2, 5}) {
      for (int64_t ceil : {0, 1}) {
        Attributes a =
            With({{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 2, 1}}, {"ceil_mode", ceil}});
        UnderTest().Check(OneNode(op, {Random(DType::kF32, {images, 33, 41, 30})}, a), Roughly);
        a.Set("dilations", Ints{2, 3});
        UnderTest().Check(OneNode(op, {Random(DType::kF32, {images, 64, 31, 40})}, a), Roughly);
      }
    }
  }
  UnderTest().Check(
      OneNode("AveragePool", {Random(DType::kF32, {2, 64, 50, 51})},
              With({{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"count_include_pad", int64_t{1}}})),
      Roughly);
}

}  // namespace
}  // namespace mge::testing
