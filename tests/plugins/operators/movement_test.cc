// SPDX-License-Identifier: Apache-2.0
// Operators that move or select elements, and reorders between layouts.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "under_test.h"

namespace mge::testing {
namespace {

mge_layout Plain() { return {sizeof(mge_layout), MGE_LAYOUT_PLAIN, 0, 0, {}, {}, {}, 0, 0}; }
mge_layout ChannelsLast() { return {sizeof(mge_layout), MGE_LAYOUT_PERMUTED, 4, 0, {0, 2, 3, 1}, {}, {}, 0, 0}; }

const DType kSizes[] = {DType::kU8, DType::kF16, DType::kF32, DType::kF64};

TEST(Movement, TransposeByAnyPermutation) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kSizes) {
      backend.Check(OneNode("Transpose", {Random(t, {37, 53})}), Exactly);
      backend.Check(OneNode("Transpose", {Random(t, {200, 130})}), Exactly);
      for (const Ints& perm :
           {Ints{0, 2, 3, 1}, Ints{0, 3, 1, 2}, Ints{3, 2, 1, 0}, Ints{1, 0, 2, 3}, Ints{0, 2, 1, 3}, Ints{2, 3, 0, 1}}) {
        backend.Check(OneNode("Transpose", {Random(t, {2, 17, 9, 11})}, With({{"perm", perm}})), Exactly);
      }
      backend.Check(OneNode("Transpose", {Random(t, {0, 3})}), Exactly);
      backend.Check(OneNode("Transpose", {Random(t, {})}), Exactly);
    }
  });
}

TEST(Movement, ReshapesCopyOrShareMemory) {
  for (DType t : kSizes) {
    UnderTest().Check(OneNode("Reshape", {Random(t, {6, 4}), Integers({3, 8})}, {}, {1}), Exactly);
    UnderTest().Check(OneNode("Flatten", {Random(t, {2, 3, 4})}), Exactly);
    UnderTest().Check(OneNode("Unsqueeze", {Random(t, {2, 3}), Integers({0, 3})}, {}, {1}), Exactly);
    UnderTest().Check(OneNode("Squeeze", {Random(t, {1, 3, 1}), Integers({0})}, {}, {1}), Exactly);
  }
}

TEST(Movement, ConcatAndSplit) {
  for (DType t : kSizes) {
    for (int64_t axis : {0, 1, 2, 3, -1}) {
      Shape a = {2, 3, 4, 5}, b = a, c = a;
      b[axis < 0 ? 3 : axis] = 7;
      c[axis < 0 ? 3 : axis] = 0;
      UnderTest().Check(OneNode("Concat", {Random(t, a), Random(t, b, -2, 2, 2), Random(t, c)}, With({{"axis", axis}})),
                        Exactly);
    }
    UnderTest().Check(OneNode("Split", {Random(t, {2, 9, 4}), Integers({2, 0, 7})}, With({{"axis", int64_t{1}}}), {1}, 3),
                      Exactly);
    UnderTest().Check(OneNode("Split", {Random(t, {8, 9}), Integers({5, 3})}, With({{"axis", int64_t{0}}}), {1}, 2),
                      Exactly);
  }
}

TEST(Movement, SlicesWithStepsOfEitherSign) {
  for (DType t : kSizes) {
    Tensor x = Random(t, {3, 10, 8, 5});
    UnderTest().Check(
        OneNode("Slice", {x, Integers({1, 2}), Integers({9, 7}), Integers({1, 2}), Integers({3, 2})}, {}, {1, 2, 3, 4}),
        Exactly);
    UnderTest().Check(
        OneNode("Slice", {x, Integers({-1}), Integers({-100}), Integers({1}), Integers({-2})}, {}, {1, 2, 3, 4}), Exactly);
    UnderTest().Check(OneNode("Slice", {x, Integers({0, 5}), Integers({2, 100})}, {}, {1, 2}), Exactly);
    UnderTest().Check(OneNode("Slice", {x, Integers({5}), Integers({5}), Integers({1})}, {}, {1, 2, 3}), Exactly);
  }
}

TEST(Movement, ExpandTileAndBlocks) {
  for (DType t : kSizes) {
    UnderTest().Check(OneNode("Expand", {Random(t, {3, 1, 5}), Integers({2, 3, 4, 1})}, {}, {1}), Exactly);
    UnderTest().Check(OneNode("Expand", {Random(t, {}), Integers({40, 3})}, {}, {1}), Exactly);
    UnderTest().Check(OneNode("Tile", {Random(t, {2, 3, 4}), Integers({2, 1, 3})}, {}, {1}), Exactly);
    UnderTest().Check(OneNode("DepthToSpace", {Random(t, {2, 12, 3, 5})}, With({{"blocksize", int64_t{2}}})), Exactly);
    UnderTest().Check(
        OneNode("DepthToSpace", {Random(t, {2, 12, 3, 5})}, With({{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}})),
        Exactly);
    UnderTest().Check(OneNode("SpaceToDepth", {Random(t, {2, 3, 6, 10})}, With({{"blocksize", int64_t{2}}})), Exactly);
  }
}

TEST(Movement, PadsOfEveryMode) {
  for (DType t : kSizes) {
    Tensor x = Random(t, {2, 3, 5, 6});
    Tensor pads = Integers({0, 1, 2, 3, 1, 0, 2, 4}), value = Fill(t, {}, {3});
    UnderTest().Check(OneNode("Pad", {x, pads, value}, {}, {1, 2}), Exactly);
    UnderTest().Check(OneNode("Pad", {x, pads, value}, {}, {1}), Exactly);
    UnderTest().Check(OneNode("Pad", {x, pads}, {}, {1}), Exactly);
    UnderTest().Check(OneNode("Pad", {x, Integers({0, 0, -1, 2, 0, 0, -2, -3}), value}, {}, {1, 2}), Exactly);
    for (const char* mode : {"reflect", "edge", "wrap"}) {
      UnderTest().Check(OneNode("Pad", {x, Integers({0, 1, 2, 3, 1, 0, 2, 4})}, With({{"mode", std::string(mode)}}), {1}),
                        Exactly);
    }
  }
}

TEST(Movement, GathersCheckTheirIndices) {
  for (DType t : kSizes) {
    Tensor x = Random(t, {5, 6, 7});
    for (int64_t axis : {0, 1, 2}) {
      UnderTest().Check(OneNode("Gather", {x, Fill(DType::kI64, {2, 2}, {0, -1, 4, 2})}, With({{"axis", axis}})), Exactly);
      UnderTest().Check(OneNode("Gather", {x, Fill(DType::kI32, {}, {3})}, With({{"axis", axis}})), Exactly);
    }
    UnderTest().Check(OneNode("GatherElements", {x, Random(DType::kI64, {3, 6, 2}, -5, 4)}, With({{"axis", int64_t{0}}})),
                      Exactly);
    UnderTest().Check(OneNode("GatherND", {x, Random(DType::kI64, {3, 4, 2}, -5, 4)}), Exactly);
    UnderTest().Check(OneNode("GatherND", {x, Random(DType::kI64, {5, 2}, -6, 5)}, With({{"batch_dims", int64_t{1}}})),
                      Exactly);
  }
  std::vector<Tensor> expected = {Random(DType::kF32, {2, 7})};
  Case c = OneNode("Gather", {Random(DType::kF32, {5, 7}), Integers({0, 9})});
  auto outcome = UnderTest().Check(c, Exactly, &expected);
  ASSERT_FALSE(outcome.codes.empty());
  EXPECT_EQ(outcome.codes[0], MGE_OUT_OF_RANGE);
  EXPECT_THAT(outcome.errors[0], ::testing::EndsWith(": index 9 is outside of [-5, 5)"));
}

TEST(Movement, ScattersApplyUpdatesInOrder) {
  for (DType t : kSizes) {
    Tensor x = Random(t, {5, 6});
    for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
      UnderTest().Check(
          OneNode("ScatterElements", {x, Fill(DType::kI64, {2, 3}, {0, 1, -1, 0, 1, 3}), Random(t, {2, 3}, -3, 3, 5)},
                  With({{"axis", int64_t{0}}, {"reduction", std::string(reduction)}})),
          Closely);
      UnderTest().Check(OneNode("ScatterND", {x, Fill(DType::kI64, {3, 1}, {4, 0, 0}), Random(t, {3, 6}, -3, 3, 5)},
                                With({{"reduction", std::string(reduction)}})),
                        Closely);
    }
  }
}

TEST(Movement, ScattersOfManyUpdatesKeepTheirOrderAlongEveryAxis) {
  for (int64_t axis : {0, 1, 2, 3}) {
    for (const char* reduction : {"none", "add"}) {
      Tensor indices = Random(DType::kI64, {9, 8, 7, 30}, 0, 5);
      UnderTest().Check(
          OneNode("ScatterElements", {Random(DType::kF32, {10, 9, 8, 31}), indices, Random(DType::kF32, {9, 8, 7, 30})},
                  With({{"axis", axis}, {"reduction", std::string(reduction)}})),
          Closely);
    }
  }
  UnderTest().Check(OneNode("ScatterElements",
                            {Random(DType::kI32, {50}), Random(DType::kI64, {30000}, 0, 49), Random(DType::kI32, {30000})},
                            With({{"axis", int64_t{0}}})),
                    Closely);
}

TEST(Movement, OneHotAndTrilu) {
  Tensor depth = Fill(DType::kI64, {}, {5});
  for (DType t : kSizes) {
    for (int64_t axis : {0, 1, -1}) {
      UnderTest().Check(
          OneNode("OneHot", {Random(DType::kI64, {3, 4}, -7, 7), depth, Fill(t, {2}, {1, 4})}, With({{"axis", axis}}), {1}),
          Exactly);
    }
    for (int64_t upper : {0, 1}) {
      for (int64_t k : {-9, -1, 0, 2, 9}) {
        UnderTest().Check(OneNode("Trilu", {Random(t, {2, 4, 6}), Fill(DType::kI64, {}, {static_cast<double>(k)})},
                                  With({{"upper", upper}}), {1}),
                          Exactly);
      }
    }
  }
}

TEST(Movement, ResizesNearestAndLinear) {
  for (const char* mode : {"nearest", "linear"}) {
    for (const char* coordinates :
         {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"}) {
      for (DType t : {DType::kF32, DType::kF16}) {
        Tensor scales = Fill(DType::kF32, {4}, {1, 1, 2, 1.5}), sizes = Integers({1, 3, 3, 11});
        Attributes a = With({{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(coordinates)}});
        UnderTest().Check(OneNode("Resize", {Random(t, {1, 3, 5, 6}), Tensor(), scales}, a, {2}), Roughly);
        UnderTest().Check(OneNode("Resize", {Random(t, {1, 3, 5, 6}), Tensor(), Tensor(), sizes}, a, {3}), Roughly);
      }
    }
  }
}

TEST(Movement, ReordersBetweenLayouts) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kSizes) {
      for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 64, 30, 33}, Shape{2, 17, 9, 1}, Shape{1, 130, 8, 8}}) {
        Tensor x = Random(t, shape);
        backend.CheckReorder(x, Plain(), ChannelsLast());
        backend.CheckReorder(x, ChannelsLast(), Plain());
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
