// SPDX-License-Identifier: Apache-2.0
// MoE and QMoE on the CPU backend.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mge/plugin/attributes.hpp"
#include "under_test.h"

namespace mge::testing {
namespace {

struct Layer {
  int64_t tokens = 5, hidden = 32, inner = 48, experts = 4, chosen = 2;
  std::string activation = "relu";
  int64_t fusion = 0;  // of swiglu
  bool third = false;  // has fc3
  bool biases = true;
  int64_t bits = 0;   // 0: floats
  int64_t block = 0;  // 0: one scale for a row
  bool zeros = false;
  int64_t accuracy_level = 0;
  bool router_weights = false;
  std::vector<std::pair<std::string, AttributeValue>> more = {};
  bool constant = true;
};

Case CaseOf(const Layer& l) {
  const bool fused = l.fusion != 0;
  int seed = 2;
  std::vector<Tensor> inputs = {Random(DType::kF32, {1, l.tokens, l.hidden}, -1, 1, 1),
                                Random(DType::kF32, {l.tokens, l.experts}, -2, 2, 2)};
  std::vector<Tensor> zeros;
  for (int m = 0; m < (l.third ? 3 : 2); ++m) {
    const int64_t columns = m == 1 ? l.hidden : m == 0 && fused ? 2 * l.inner : l.inner;
    const int64_t depth = m == 1 ? l.inner : l.hidden, blocks = l.block ? depth / l.block : 1;
    if (l.bits == 0) {
      inputs.push_back(Random(DType::kF32, {l.experts, columns, depth}, -0.5, 0.5, ++seed));
    } else {
      inputs.push_back(Random(DType::kU8, {l.experts, columns, depth * l.bits / 8}, 0, 255, ++seed));
      const double most = l.bits == 8 ? 0.002 : l.bits == 4 ? 0.04 : 0.1;
      const Shape scales = l.block ? Shape{l.experts, columns, blocks} : Shape{l.experts, columns};
      inputs.push_back(Random(DType::kF32, scales, most / 4, most, ++seed));
      const Shape packed =
          l.block ? Shape{l.experts, columns, (blocks * l.bits + 7) / 8} : Shape{l.experts, (columns * l.bits + 7) / 8};
      zeros.push_back(l.zeros ? Random(DType::kU8, packed, 0, 255, ++seed) : Tensor());
    }
    inputs.push_back(l.biases ? Random(DType::kF32, {l.experts, columns}, -1, 1, ++seed) : Tensor());
  }
  if (l.bits != 0) {
    inputs.resize(11);
    zeros.resize(3);
    inputs.insert(inputs.end(), zeros.begin(), zeros.end());
    inputs.push_back(l.router_weights ? Random(DType::kF32, {l.tokens, l.experts}, 0.1, 1, ++seed) : Tensor());
  }
  Attributes attrs = With({{"k", l.chosen}, {"activation_type", l.activation}, {"swiglu_fusion", l.fusion}});
  if (l.bits != 0) {
    attrs.Set("expert_weight_bits", l.bits);
    attrs.Set("accuracy_level", l.accuracy_level);
    if (l.block) attrs.Set("block_size", l.block);
  }
  for (const auto& [name, value] : l.more) attrs.Set(name, value);
  std::vector<int> constants;
  for (int i = 2; l.constant && i < static_cast<int>(inputs.size()); ++i) {
    if (i != 14) constants.push_back(i);
  }
  Case c = OneNode(l.bits ? "QMoE" : "MoE", inputs, attrs, constants, 1, "com.microsoft");
  c.name = l.activation + " of " + std::to_string(l.bits) + " bits, block " + std::to_string(l.block) + ", " +
           std::to_string(l.tokens) + " tokens";
  return c;
}

Tolerance OfSums(DType) { return {2e-4, 2e-4}; }
// The error of rows of 8 bits.
Tolerance OfBytes(DType) { return {5e-2, 2e-1}; }

// Checks that there is a kernel, and that each computes what the body does.
void CheckKernels(Backend& backend, const Case& c, Tolerance (*tolerance)(DType)) {
  EXPECT_FALSE(backend.Check(c, tolerance).candidates.empty()) << c.name;
}

TEST(Experts, OfFloatsHaveEveryActivation) {
  OnEveryMachine([](Backend& backend) {
    for (const char* activation : {"relu", "relu2", "gelu", "silu", "identity"}) {
      CheckKernels(backend, CaseOf({.activation = activation}), OfSums);
      CheckKernels(backend, CaseOf({.activation = activation, .third = true, .biases = false}), OfSums);
    }
  });
}

const std::vector<std::pair<std::string, AttributeValue>> kSwiglu = {
    {"activation_alpha", 1.702f}, {"activation_beta", 1.0f}, {"swiglu_limit", 0.7f}};

TEST(Experts, SupportEveryOrderOfGateAndLinearPart) {
  auto late = kSwiglu;
  late.push_back({"swiglu_limit_after_activation", int64_t{1}});
  OnEveryMachine([&](Backend& backend) {
    for (int64_t bits : {0, 4}) {
      for (int64_t fusion : {0, 1, 2}) {
        Layer l = {.activation = "swiglu", .fusion = fusion, .third = fusion == 0, .bits = bits, .block = bits ? 16 : 0};
        l.more = kSwiglu;
        CheckKernels(backend, CaseOf(l), OfSums);
        l.more = late;
        CheckKernels(backend, CaseOf(l), OfSums);
        l.accuracy_level = 4;
        l.more = {};
        CheckKernels(backend, CaseOf(l), OfBytes);
      }
    }
  });
}

TEST(Experts, OfPackedWeightsHaveScalesOfRowsOrBlocks) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t bits : {2, 4, 8}) {
      for (int64_t block : {0, 16, 32}) {
        for (bool zeros : {false, true}) {
          for (int64_t tokens : {1, 21}) {
            Layer l = {.tokens = tokens, .hidden = 64, .inner = 96, .activation = "silu", .bits = bits, .block = block};
            l.zeros = zeros;
            CheckKernels(backend, CaseOf(l), OfSums);
            l.accuracy_level = 4;
            CheckKernels(backend, CaseOf(l), OfBytes);
          }
        }
      }
    }
  });
}

TEST(Experts, MayHaveRowsThatAreNotAMultipleOfABlock) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t level : {0, 4}) {
      Layer l = {.tokens = 7, .hidden = 20, .inner = 38, .activation = "gelu", .bits = 4, .zeros = true};
      l.accuracy_level = level;
      CheckKernels(backend, CaseOf(l), level ? OfBytes : OfSums);
    }
  });
}

TEST(Experts, OfManyTokensAreComputedInBatches) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t bits : {0, 4}) {
      Layer l = {.tokens = 400, .hidden = 32, .inner = 32, .experts = 7, .chosen = 3, .bits = bits, .block = bits ? 16 : 0};
      CheckKernels(backend, CaseOf(l), OfSums);
    }
  });
}

TEST(Experts, HaveWeightsOfEveryKind) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t normalized : {0, 1}) {
      Layer l = {.more = {{"normalize_routing_weights", normalized}}};
      CheckKernels(backend, CaseOf(l), OfSums);
      l.bits = 8;
      CheckKernels(backend, CaseOf(l), OfSums);
      l.router_weights = true;
      CheckKernels(backend, CaseOf(l), OfSums);
    }
    CheckKernels(backend, CaseOf({.experts = 6, .more = {{"use_sparse_mixer", int64_t{1}}}}), OfSums);
  });
}

TEST(Experts, WithoutTokensReturnNothing) {
  OnEveryMachine([](Backend& backend) { CheckKernels(backend, CaseOf({.tokens = 0}), OfSums); });
}

TEST(Experts, OfComputedWeightsAreLeftToTheBody) {
  const Backend::Outcome o = UnderTest().Offers(CaseOf({.constant = false}));
  EXPECT_TRUE(o.candidates.empty());
}

}  // namespace
}  // namespace mge::testing
