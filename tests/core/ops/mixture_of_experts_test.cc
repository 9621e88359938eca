// SPDX-License-Identifier: Apache-2.0
// Layers of experts of com.microsoft. The expected results are those of ONNX Runtime, unless a line says otherwise.
#include "tests/core/ops/microsoft_test_util.h"

namespace mge {
namespace {

const std::vector<MicrosoftNode>& Nodes() {
  static const std::vector<MicrosoftNode> nodes = {
      {"MoE",
       "com.microsoft::MoE",
       {"float32[3,4]", "float32[3,3]<0.1,2,-1,1,0.5,0.25,-1,-2,3>", "float32[3,2,4]", "float32[3,2]", "float32[3,4,2]",
        "float32[3,4]"},
       "{k=2}",
       1,
       0,
       {5.07061, -2.42363, -0.802604, 3.11132, 0.1333, 1.0197, -0.650046, -0.284136, -5.66413, -3.36163, 1.57451, 3.82786}},
      {"MoENormalized",
       "com.microsoft::MoE",
       {"float32[1,3,4]", "float32[3,3]<0.1,2,-1,1,0.5,0.25,-1,-2,3>", "float32[3,2,4]", "float32[3,2]", "float32[3,4,2]",
        "float32[3,4]"},
       "{k=2, activation_type=\"gelu\", normalize_routing_weights=1}",
       1,
       0,
       {5.26949, -2.59371, -0.766249, 3.26207, -0.0251406, 1.36913, -0.681709, -0.422473, -5.76692, -3.54666, 1.68373,
        3.85351}},
      {"MoEOfOneExpert",
       "com.microsoft::MoE",
       {"float32[3,4]", "float32[3,3]<0.1,2,-1,1,0.5,0.25,-1,-2,3>", "float32[3,2,4]", "_", "float32[3,4,2]"},
       "{activation_type=\"silu\"}",
       1,
       0,
       {3.62215, -2.4394, 0.231396, 2.26585, -0.104817, 0.547249, -0.711183, -0.347363, -3.86639, -1.82685, 0.946796,
        2.98633}},
      {"MoEWithoutActivation",
       "com.microsoft::MoE",
       {"float32[3,4]", "float32[3,3]<0.1,2,-1,1,0.5,0.25,-1,-2,3>", "float32[3,2,4]", "float32[3,2]", "float32[3,4,2]",
        "float32[3,4]"},
       "{k=3, activation_type=\"identity\"}",
       1,
       0,
       {4.60664, -4.18119, 1.05118, 3.65007, -0.421164, 1.85375, -0.76139, -0.716027, -6.30663, -4.8823, 2.54528, 3.83428}},
      {"MoEGated",
       "com.microsoft::MoE",
       {"float32[3,4]", "float32[3,3]<0.1,2,-1,1,0.5,0.25,-1,-2,3>", "float32[3,4,4]", "float32[3,4]", "float32[3,4,2]",
        "float32[3,4]"},
       "{k=2, activation_type=\"swiglu\", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=0.5}",
       1,
       0,
       {0.903386, -0.130594, -0.634298, 0.678303, 0.00640443, 0.544693, 0.0292186, -0.0885675, -0.381374, -1.06622, 0.402969,
        -0.332016}},
      {"QMoE",
       "com.microsoft::QMoE",
       {"float32[3,4]", "float32[3,3]<0.1,2,-1,1,0.5,0.25,-1,-2,3>", "uint8[3,2,2]", "float32[3,2]", "float32[3,2]",
        "uint8[3,4,1]", "float32[3,4]", "float32[3,4]"},
       "{k=2}",
       1,
       0,
       {-1.71346, 8.06091, 0.828843, 3.55997, -14.0769, 6.16895, -3.26809, 5.9352, -0.510398, 1.23763, 0.314357, -0.762366}},
      {"QMoEWithZeroPoints",
       "com.microsoft::QMoE",
       {"float32[3,4]", "float32[3,3]<0.1,2,-1,1,0.5,0.25,-1,-2,3>", "uint8[3,2,4]", "float32[3,2]", "_", "uint8[3,4,2]",
        "float32[3,4]", "_", "_", "_", "_", "uint8[3,2]", "uint8[3,4]"},
       "{k=2, expert_weight_bits=8, activation_type=\"identity\"}",
       1,
       0,
       {-4290.64, 12702.4, -76.7225, 1197.94, -924.11, 7011.39, 820.224, 4648.61, 13081.2, -4.82536, -89367.4, -24934.9}},
      {"QMoEWithBlocks",
       "com.microsoft::QMoE",
       {"float32[1,1,16]", "float32[1,3]", "uint8[3,16,8]", "float32[3,16,1]", "float32[3,16]", "uint8[3,16,8]",
        "float32[3,16,1]", "float32[3,16]", "_", "_", "_", "uint8[3,16,1]", "uint8[3,16,1]"},
       "{k=2, block_size=16, activation_type=\"silu\"}",
       1,
       0,
       {-49.0818, -119.714, 296.177, -101.565, 2.84803, 9.75591, 184.628, -75.1298, 71.6802, 208.726, -32.5076, 66.3296,
        280.166, -154.616, 211.151, -109.212}},
      {"QMoEWithRouterWeights",
       "com.microsoft::QMoE",
       {"float32[1,16]", "float32[1,3]", "uint8[3,32,8]", "float32[3,32,1]", "float32[3,32]", "uint8[3,16,8]",
        "float32[3,16,1]", "float32[3,16]", "_", "_", "_", "_", "_", "_", "float32[1,3]<0.5,0.25,0.75>"},
       "{k=2, block_size=16, activation_type=\"swiglu\", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0, "
       "swiglu_limit=0.5, normalize_routing_weights=1}",
       1,
       0,
       {-8.03138, -3.5443, 1.31044, 4.37399, 1.20309, 1.86205, 4.0823, -1.93802, -3.45859, -3.68197, 2.4707, 4.95008,
        4.29803, -0.0951445, -3.84505, -3.21495}},
      {"MoEWithSparseMixer",  // weights as in transformers' sparsemixer()
       "com.microsoft::MoE",
       {"float32[3,4]", "float32[3,3]<1,1.01,0.995,0.1,2,-1,-1,-1.02,-1.01>", "float32[3,2,4]", "_", "float32[3,4,2]"},
       "{k=2, use_sparse_mixer=1}",
       1,
       0,
       {1.61701, -1.0078, -0.0234961, 0.960808, 0.40625, 2.75, -3.5, -1.15625, -2.00215, -0.800859, 0.40043, 1.60172}},
  };
  return nodes;
}

class MixtureOfExperts : public testing::TestWithParam<MicrosoftNode> {};

TEST_P(MixtureOfExperts, ComputesWhatOnnxRuntimeComputes) { CheckNode(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Nodes, MixtureOfExperts, testing::ValuesIn(Nodes()),
                         [](const testing::TestParamInfo<MicrosoftNode>& info) { return info.param.name; });

constexpr const char* kTokens = "float32[2,2]<1,2,-1,0.5>";
constexpr const char* kScores = "float32[2,1]<1,1>";
constexpr const char* kDown = "float32[1,2,2]<1,2,3,-1>";

std::vector<double> ResultOf(const std::vector<std::string>& inputs, const std::string& attributes) {
  absl::StatusOr<Tensor> y = RunNode({"", "com.microsoft::MoE", inputs, attributes, 1, 0, {}}, true);
  EXPECT_TRUE(y.ok()) << FormatError(y.status());
  return y.ok() ? Numbers(*y) : std::vector<double>();
}

TEST(Experts, GateAndLinearPartAreInterleavedConcatenatedOrSeparate) {
  for (const std::string activation : {"swiglu", "geglu"}) {
    const std::string rest = ", activation_type=\"" + activation + "\"}";
    const std::vector<double> in_turn =
        ResultOf({kTokens, kScores, "float32[1,4,2]<1,2,3,4,5,6,7,8>", "_", kDown}, "{swiglu_fusion=1" + rest);
    ASSERT_EQ(in_turn.size(), 4u);
    EXPECT_EQ(ResultOf({kTokens, kScores, "float32[1,4,2]<1,2,5,6,3,4,7,8>", "_", kDown}, "{swiglu_fusion=2" + rest),
              in_turn);
    EXPECT_EQ(ResultOf({kTokens, kScores, "float32[1,2,2]<1,2,5,6>", "_", kDown, "_", "float32[1,2,2]<3,4,7,8>"},
                       "{swiglu_fusion=0" + rest),
              in_turn);
  }
}

TEST(Experts, AnActivatedGateMayBeLimited) {
  const std::vector<std::string> inputs = {"float32[1,2]<1,2>", "float32[1,1]<1>", "float32[1,2,2]<1,2,0,1>", "_",
                                           "float32[1,2,1]<1,0>"};
  // The gate is 5 and the linear part 2: min(5 / (1 + exp(-5)), 3) * 2, and 3 / (1 + exp(-3)) * 2.
  const std::string swiglu = "{activation_type=\"swiglu\", swiglu_fusion=1, swiglu_limit=3.0";
  EXPECT_NEAR(ResultOf(inputs, swiglu + ", swiglu_limit_after_activation=1}")[0], 6, 1e-5);
  EXPECT_NEAR(ResultOf(inputs, swiglu + "}")[0], 6 / (1 + std::exp(-3.0)), 1e-5);
}

TEST(Experts, ThatAreNotChosenDoNotMatter) {
  const std::vector<double> y =
      ResultOf({"float32[1,1]<1>", "float32[1,2]<0,1>", "float32[2,1,1]<inf,1>", "_", "float32[2,1,1]<1,1>"},
               "{k=1, normalize_routing_weights=1}");
  EXPECT_EQ(y, std::vector<double>{1});
}

TEST(Experts, ErrorsNameWhatDoesNotFit) {
  struct Row {
    std::vector<std::string> inputs;
    std::string attributes, op, text;
  };
  const std::string x = "float32[2,4]", r = "float32[2,3]", up = "float32[3,2,4]", down = "float32[3,4,2]";
  const std::string bytes = "uint8[3,4,2]", scales = "float32[3,4]";
  for (const Row& row : std::vector<Row>{
           {{x, r, up, "_", down}, "{k=4}", "MoE", "k = 4 is more than the 3 experts"},
           {{x, r, up, "_", down}, "{k=0}", "MoE", "k = 0 is below 1"},
           {{x, r, up, "_", down}, "{activation_type=\"tanh\"}", "MoE", "tanh"},
           {{x, r, up, "_", down}, "{activation_type=\"swiglu\", swiglu_fusion=1}", "MoE", "fc1_experts_weights"},
           {{x, r, up, "_", down}, "{activation_type=\"swiglu\"}", "MoE", "needs fc3_experts_weights"},
           {{x, r, up, "_", down}, "{use_sparse_mixer=1}", "MoE", "use_sparse_mixer needs k = 2"},
           {{x, "float32[2,5]", up, "_", down}, "", "MoE", "router_probs"},
           {{"float32[2,5]", r, up, "_", down}, "", "MoE", "the last dimension of input"},
           {{x, r, bytes, scales, "_", bytes, scales}, "{weights_prepacked=1}", "QMoE", "weights_prepacked"},
           {{x, r, bytes, scales, "_", bytes, scales}, "{quant_type=\"fp8\"}", "QMoE", "quant_type = 'fp8'"},
           {{x, r, bytes, scales, "_", bytes, scales}, "{expert_weight_bits=3}", "QMoE", "3 bits"},
           {{x, r, bytes, scales, "_", bytes, scales}, "{block_size=16}", "QMoE", "block_size = 16 does not divide"},
           {{x, r, bytes, "_", "_", bytes, scales}, "", "QMoE", "fc1_scales is absent"},
       }) {
    const absl::StatusOr<Tensor> y = RunNode({"", "com.microsoft::" + row.op, row.inputs, row.attributes, 1, 0, {}}, true);
    ASSERT_FALSE(y.ok()) << row.text;
    EXPECT_NE(FormatError(y.status()).find(row.text), std::string::npos) << FormatError(y.status());
  }
}

}  // namespace
}  // namespace mge
