// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "tests/plugins/gpu/emulated_backend.h"

namespace mge::testing {
namespace {

Attributes With(std::initializer_list<std::pair<const char*, AttributeValue>> list) {
  Attributes a;
  for (const auto& [name, value] : list) a.Set(name, value);
  return a;
}

const DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};

// Sums of many terms: float32's error grows with them.
Tolerance OfSums(DType t) {
  Tolerance r = ToleranceOf(t, 40);
  r.absolute *= 10;
  return r;
}

TEST(GpuReduction, EveryReductionOverEveryAxis) {
  const char* kOps[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                        "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};
  ForEachMachine([&](Backend& gpu) {
    for (const char* op : kOps) {
      for (DType t : kFloats) {
        for (int64_t keep : {0, 1}) {
          for (std::vector<int64_t> axes : {std::vector<int64_t>{0}, {1}, {-1}, {2, 3}, {0, 2, 3}, {1, 3}, {0, 1, 2, 3}}) {
            gpu.Check(OneNode(op, {Random(t, {2, 5, 3, 35}, 0.9, 1.1), Integers(axes)}, With({{"keepdims", keep}}), {1}),
                      OfSums);
          }
        }
      }
      gpu.Check(OneNode(op, {Random(DType::kF32, {3, 70}, 0.9, 1.1)}), OfSums);
    }
    for (const char* op : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare"}) {
      for (DType t : {DType::kI32, DType::kI64, DType::kU32}) {
        gpu.Check(OneNode(op, {Random(t, {4, 6, 5}, -3, 3), Integers({1})}, {}, {1}), Exactly);
      }
    }
    gpu.Check(OneNode("ReduceSum", {Random(DType::kF32, {4, 6}), Integers({})},
                      With({{"noop_with_empty_axes", int64_t{1}}}), {1}),
              Exactly);
    gpu.Check(OneNode("ReduceSum", {Random(DType::kF32, {4, 0, 3}), Integers({1})}, {}, {1}), Exactly);
    gpu.Check(OneNode("ReduceSum", {Random(DType::kF32, {100000}), Integers({0})}, {}, {1}), OfSums);
  });
}

TEST(GpuReduction, ArgMaxAndArgMin) {
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kU8}) {
      for (int64_t axis : {0, 1, -1}) {
        for (int64_t last : {0, 1}) {
          Emulated().Check(OneNode(op, {Random(t, {4, 9, 6}, 0, 3)}, With({{"axis", axis}, {"select_last_index", last}})),
                           Exactly);
        }
      }
    }
  }
}

TEST(GpuReduction, SoftmaxAlongAnyAxis) {
  ForEachMachine([](Backend& gpu) {
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      for (DType t : kFloats) {
        for (int64_t axis : {0, 1, 2, 3, -1}) {
          gpu.Check(OneNode(op, {Random(t, {2, 5, 7, 37}, -9, 9)}, With({{"axis", axis}})), Roughly);
        }
        gpu.Check(OneNode(op, {Random(t, {3, 1}, -9, 9)}), Roughly);
        gpu.Check(OneNode(op, {Random(t, {0, 4}, -9, 9)}), Roughly);
        gpu.Check(OneNode(op, {Random(t, {64, 128}, -90, 90)}), Roughly);
      }
    }
  });
}

TEST(GpuReduction, Normalisations) {
  ForEachMachine([](Backend& gpu) {
    for (DType t : kFloats) {
      Tensor x = Random(t, {2, 6, 4, 35});
      Tensor c = Random(t, {6}, 0.5, 2, 2), d = Random(t, {6}, -1, 1, 3);
      gpu.Check(OneNode("LayerNormalization", {x, Random(t, {35}, 0.5, 2), Random(t, {35}, -1, 1, 4)}), OfSums);
      gpu.Check(OneNode("LayerNormalization", {x, Random(t, {4, 35}, 0.5, 2)}, With({{"axis", int64_t{2}}})), OfSums);
      gpu.Check(OneNode("InstanceNormalization", {x, c, d}), OfSums);
      gpu.Check(OneNode("GroupNormalization", {x, c, d}, With({{"num_groups", int64_t{1}}})), OfSums);
      gpu.Check(OneNode("GroupNormalization", {x, c, d}, With({{"num_groups", int64_t{3}}})), OfSums);
      gpu.Check(OneNode("BatchNormalization", {x, c, d, d, c}), OfSums);
      gpu.Check(OneNode("LRN", {x}, With({{"size", int64_t{3}}})), OfSums);
      gpu.Check(OneNode("LRN", {x}, With({{"size", int64_t{4}}, {"alpha", 0.5f}})), OfSums);
    }
    Tensor x = Random(DType::kF32, {4, 768});
    gpu.Check(OneNode("LayerNormalization", {x, Random(DType::kF32, {768}), Random(DType::kF32, {768})}, {}, {}, 3), OfSums);
  });
}

TEST(GpuReduction, CumSumAndTopK) {
  for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kI32}) {
    for (int64_t axis : {0, 1, 2}) {
      for (int64_t flag : {0, 1, 2, 3}) {
        Emulated().Check(OneNode("CumSum", {Random(t, {3, 4, 5}), Fill(DType::kI64, {}, {static_cast<double>(axis)})},
                            With({{"exclusive", flag & 1}, {"reverse", flag >> 1}})), Roughly);
        Emulated().Check(OneNode("TopK", {Random(t, {6, 7, 8}, 0, 5), Integers({3})},
                                 With({{"axis", axis}, {"largest", flag & 1}}), {1}, 2),
                         Exactly);
      }
    }
    Emulated().Check(OneNode("TopK", {Random(t, {5, 300}, 0, 90), Integers({300})}, {}, {1}, 2), Exactly);
    Emulated().Check(OneNode("TopK", {Random(t, {5, 30}), Integers({0})}, {}, {1}, 2), Exactly);
  }
}

TEST(GpuReduction, AnAxisOutsideOfTheRankIsTheRunsError) {
  std::vector<Tensor> never = {Fill(DType::kF32, {3}, {0, 0, 0})};
  auto outcome =
      Emulated().Check(OneNode("CumSum", {Random(DType::kF32, {3}), Fill(DType::kI32, {}, {1})}), Exactly, &never);
  ASSERT_FALSE(outcome.codes.empty());
  EXPECT_EQ(outcome.codes[0], MGE_OUT_OF_RANGE);
}

TEST(GpuReduction, HardmaxAlongAnyAxis) {
  for (DType t : kFloats) {
    for (int64_t axis : {0, 1, -1})
      Emulated().Check(OneNode("Hardmax", {Random(t, {3, 4, 7})}, With({{"axis", axis}})), Exactly);
  }
}

TEST(GpuReduction, MaxPoolGivesIndices) {
  for (int64_t order : {0, 1}) {
    Attributes a = With(
        {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}, {"storage_order", order}});
    Emulated().Check(OneNode("MaxPool", {Random(DType::kF32, {2, 3, 7, 8})}, a, {}, 2), Exactly);
  }
}

TEST(GpuReduction, PoolsWithPadsStridesAndDilation) {
  ForEachMachine([](Backend& gpu) {
    for (DType t : kFloats) {
      for (const char* op : {"MaxPool", "AveragePool"}) {
        for (int64_t ceil : {0, 1}) {
          Attributes a = With(
              {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"ceil_mode", ceil}});
          gpu.Check(OneNode(op, {Random(t, {2, 5, 9, 37})}, a), Roughly);
          a.Set("dilations", Ints{2, 3});
          gpu.Check(OneNode(op, {Random(t, {2, 70, 9, 12})}, a), Roughly);
        }
        for (const char* automatic : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
          gpu.Check(
              OneNode(
                  op, {Random(t, {1, 3, 10, 11})},
                  With({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"auto_pad", std::string(automatic)}})),
              Roughly);
        }
        gpu.Check(OneNode(op, {Random(t, {1, 3, 40})}, With({{"kernel_shape", Ints{4}}})), Roughly);
        gpu.Check(OneNode(op, {Random(t, {1, 3, 5, 6, 7})}, With({{"kernel_shape", Ints{2, 3, 2}}})), Roughly);
      }
      gpu.Check(OneNode("AveragePool", {Random(t, {1, 3, 10, 11})},
                        With({{"kernel_shape", Ints{3, 3}},
                              {"strides", Ints{2, 2}},
                              {"pads", Ints{1, 1, 1, 1}},
                              {"ceil_mode", int64_t{1}},
                              {"count_include_pad", int64_t{1}}})),
                Roughly);
      gpu.Check(OneNode("GlobalAveragePool", {Random(t, {2, 70, 7, 7})}), Roughly);
      gpu.Check(OneNode("GlobalMaxPool", {Random(t, {2, 70, 7, 7})}), Exactly);
    }
    gpu.Check(OneNode("MaxPool", {Random(DType::kI8, {1, 3, 10, 11}, -90, 90)}, With({{"kernel_shape", Ints{3, 3}}})),
              Exactly);
    gpu.Check(OneNode("MaxPool", {Random(DType::kF32, {1, 2, 3, 3000})},
                      With({{"kernel_shape", Ints{3, 5}}, {"strides", Ints{1, 3}}})),
              Exactly);
  });
}

}  // namespace
}  // namespace mge::testing
