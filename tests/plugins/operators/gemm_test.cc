// SPDX-License-Identifier: Apache-2.0
// Matrix products of every form, alone and with fused nodes.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/support/chain.h"
#include "under_test.h"

namespace mge::testing {
namespace {

Case MatMul(DType t, Shape a, Shape b, bool constant) {
  return OneNode("MatMul", {Random(t, std::move(a), -1, 1, 1), Random(t, std::move(b), -1, 1, 2)}, {},
                 constant ? std::vector<int>{1} : std::vector<int>{});
}

TEST(MatMul, ComputesEveryRemainderOfRowsAndColumns) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t m : {1, 2, 3, 5, 6, 7, 13, 14, 15, 29}) {
      for (int64_t n : {1, 7, 8, 15, 16, 17, 31, 32, 33, 48, 65, 130}) {
        for (bool constant : {true, false}) backend.Check(MatMul(DType::kF32, {m, 19}, {19, n}, constant), OfProducts(19));
      }
    }
  });
}

TEST(MatMul, SumsLongerThanABlock) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t k : {1, 255, 256, 257, 700, 1030}) {
      for (bool constant : {true, false}) backend.Check(MatMul(DType::kF32, {17, k}, {k, 37}, constant), OfProducts(k));
    }
  });
}

TEST(MatMul, LargeEnoughToBeSplit) {
  OnEveryMachine([](Backend& backend) {
    backend.Check(MatMul(DType::kF32, {300, 128}, {128, 200}, true), OfProducts(128));
    backend.Check(MatMul(DType::kF32, {20, 300}, {300, 700}, false), OfProducts(300));
    backend.Check(MatMul(DType::kF32, {1, 1000}, {1000, 900}, true), OfProducts(1000));
  });
}

TEST(MatMul, BatchesBroadcast) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kF32, DType::kF16, DType::kF64, DType::kI32}) {
      for (bool constant : {true, false}) {
        backend.Check(MatMul(t, {3, 5, 7}, {7, 9}, constant), OfProducts(7));
        backend.Check(MatMul(t, {3, 5, 7}, {3, 7, 9}, constant), OfProducts(7));
        backend.Check(MatMul(t, {5, 7}, {3, 7, 9}, constant), OfProducts(7));
        backend.Check(MatMul(t, {2, 1, 5, 7}, {3, 7, 9}, constant), OfProducts(7));
        backend.Check(MatMul(t, {1, 4, 5, 7}, {2, 1, 7, 9}, constant), OfProducts(7));
        backend.Check(MatMul(t, {7}, {7, 9}, constant), OfProducts(7));
        backend.Check(MatMul(t, {2, 5, 7}, {7}, constant), OfProducts(7));
        backend.Check(MatMul(t, {7}, {7}, constant), OfProducts(7));
        backend.Check(MatMul(t, {7}, {4, 7, 3}, constant), OfProducts(7));
      }
    }
  });
}

TEST(MatMul, EveryElementType) {
  OnEveryMachine([](Backend& backend) {
    for (DType t :
         {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI64, DType::kU32, DType::kU64}) {
      for (bool constant : {true, false}) {
        Case c = OneNode("MatMul", {Random(t, {19, 35}, -3, 3, 1), Random(t, {35, 41}, -3, 3, 2)}, {},
                         constant ? std::vector<int>{1} : std::vector<int>{});
        backend.Check(c, OfProducts(35 * 9));
      }
    }
  });
}

TEST(MatMul, GivesZerosIfThereIsNothingToSum) {
  OnEveryMachine([](Backend& backend) {
    backend.Check(MatMul(DType::kF32, {3, 0}, {0, 4}, false), Exactly);
    backend.Check(MatMul(DType::kF32, {0, 4}, {4, 5}, false), Exactly);
    backend.Check(MatMul(DType::kF32, {3, 4}, {4, 0}, false), Exactly);
    backend.Check(MatMul(DType::kF32, {0, 3, 4}, {4, 5}, false), Exactly);
  });
}

TEST(Gemm, TransposedScaledAndAdded) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
      for (int64_t ta : {0, 1}) {
        for (int64_t tb : {0, 1}) {
          for (Shape c : {Shape{}, Shape{1}, Shape{23}, Shape{1, 23}, Shape{13, 1}, Shape{13, 23}}) {
            for (bool constant : {true, false}) {
              Tensor a = Random(t, ta ? Shape{31, 13} : Shape{13, 31}, -1, 1, 1);
              Tensor b = Random(t, tb ? Shape{23, 31} : Shape{31, 23}, -1, 1, 2);
              Attributes attrs = With({{"transA", ta}, {"transB", tb}, {"alpha", 0.5f}, {"beta", 2.0f}});
              backend.Check(OneNode("Gemm", {a, b, Random(t, c, -1, 1, 3)}, attrs,
                                    constant ? std::vector<int>{1, 2} : std::vector<int>{}),
                            OfProducts(31));
            }
          }
          backend.Check(
              OneNode("Gemm", {Random(t, ta ? Shape{5, 3} : Shape{3, 5}), Random(t, tb ? Shape{4, 5} : Shape{5, 4})},
                      With({{"transA", ta}, {"transB", tb}})),
              OfProducts(20));
        }
      }
    }
  });
}

TEST(Gemm, DoesNotReadItsThirdInputIfBetaIsZero) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
      for (Shape c : {Shape{}, Shape{23}, Shape{13, 1}, Shape{13, 23}}) {
        Tensor nothing = Fill(t, c, std::vector<double>(static_cast<size_t>(Elements(c)), std::nan("")));
        for (std::vector<int> constants : {std::vector<int>{}, {1}, {1, 2}}) {
          backend.Check(OneNode("Gemm", {Random(t, {13, 31}, -1, 1), Random(t, {31, 23}, -1, 1), nothing},
                                With({{"beta", 0.0f}}), constants),
                        OfProducts(31));
        }
      }
    }
  });
}

TEST(Gemm, AddsAVectorPerColumnToASquareMatrix) {
  OnEveryMachine([](Backend& backend) {
    backend.Check(OneNode("Gemm", {Random(DType::kF32, {6, 6}), Random(DType::kF32, {6, 6}), Random(DType::kF32, {6})}),
                  OfProducts(24));
  });
}

TEST(MatMulEpilogue, BiasResidualAndActivation) {
  struct Row {
    const char* op;
    std::vector<Tensor> more;
    Attributes attrs;
  };
  const Row kActivations[] = {{"Relu", {}, {}},
                              {"Sigmoid", {}, {}},
                              {"Tanh", {}, {}},
                              {"Gelu", {}, {}},
                              {"Gelu", {}, With({{"approximate", std::string("tanh")}})},
                              {"HardSwish", {}, {}},
                              {"LeakyRelu", {}, With({{"alpha", 0.2f}})},
                              {"Clip", {Fill(DType::kF32, {}, {-0.5}), Fill(DType::kF32, {}, {0.75})}, {}}};
  OnEveryMachine([&](Backend& backend) {
    for (const Row& row : kActivations) {
      for (int64_t k : {9, 300}) {
        Case c = MatMul(DType::kF32, {2, 15, k}, {k, 35}, true);
        Then(c, "Add", {Random(DType::kF32, {35}, -1, 1, 3)});
        Then(c, "Add", {Random(DType::kF32, {2, 15, 35}, -1, 1, 4)}, {}, false);
        Then(c, row.op, row.more, row.attrs);
        EXPECT_FALSE(backend.Claims(c).empty());
        backend.Check(c, OfProducts(2 * k));
      }
    }
  });
}

TEST(MatMulEpilogue, ExcludesAResultThatOtherNodesRead) {
  Case c = MatMul(DType::kF32, {4, 5}, {5, 6}, true);
  ValueId product = c.graph.outputs()[0];
  Then(c, "Relu");
  c.graph.outputs().push_back(product);
  for (const std::string& claim : UnderTest().Claims(c)) EXPECT_EQ(claim.find("gemm_epilogue"), std::string::npos) << claim;
}

TEST(LargeMatMul, GemmOfEveryForm) {
  for (DType t : {DType::kF32, DType::kF64}) {
    for (int64_t ta : {0, 1}) {
      for (int64_t tb : {0, 1}) {
        for (Shape c : {Shape{}, Shape{130}, Shape{1, 130}, Shape{140, 1}, Shape{140, 130}}) {
          Tensor a = Random(t, ta ? Shape{190, 140} : Shape{140, 190}, -1, 1, 1);
          Tensor b = Random(t, tb ? Shape{130, 190} : Shape{190, 130}, -1, 1, 2);
          for (double beta : {1.0, 2.0}) {
            UnderTest().Check(OneNode("Gemm", {a, b, Random(t, c, -1, 1, 3)},
                                      With({{"transA", ta}, {"transB", tb}, {"beta", static_cast<float>(beta)}}), {1, 2}),
                              OfProducts(190));
          }
        }
      }
    }
  }
}

TEST(LargeMatMul, BatchesAndEpilogues) {
  UnderTest().Check(MatMul(DType::kF32, {3, 64, 96}, {3, 96, 80}, false), OfProducts(96));
  for (const char* op : {"Relu", "Gelu", "Sigmoid", "Tanh"}) {
    Case c = MatMul(DType::kF32, {150, 128}, {128, 160}, true);
    Then(c, "Add", {Random(DType::kF32, {160}, -1, 1, 3)});
    Then(c, "Add", {Random(DType::kF32, {150, 160}, -1, 1, 4)}, {}, false);
    Then(c, op);
    UnderTest().Check(c, OfProducts(256));
  }
}

}  // namespace
}  // namespace mge::testing
