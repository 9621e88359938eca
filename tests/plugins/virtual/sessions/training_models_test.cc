// SPDX-License-Identifier: Apache-2.0
// Small models of the usual kinds learn their examples on every device, with the losses that the reference evaluators compute.
#include <fstream>
#include <string>
#include <vector>

#include "core/train/training.h"
#include "fmt/format.h"
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

constexpr int kSteps = 25;

// Returns the line of a parameter with different elements.
std::string Weights(const std::string& name, const Shape& shape) {
  const Tensor numbers = Numbers(shape, name.size() + static_cast<size_t>(name.back())).tensor;
  return fmt::format("const {} = float32{}<{}>\n", name, ShapeText(shape), fmt::join(numbers.Data<float>(), ", "));
}

HostValue Integers(Shape shape, std::vector<int64_t> elements) {
  HostValue v;
  v.tensor = Tensor::Of<int64_t>(std::move(shape), elements);
  return v;
}

class TrainingModels : public testing::TestWithParam<const char*> {
 protected:
  // Trains a model on one batch. Returns the loss of each step.
  std::vector<double> Losses(const std::string& text, const std::vector<HostValue>& batch, TrainingOptions options,
                             const char* device) {
    options.optimizer = "adam";
    runtime_ = NewRuntime({{"virtual.devices", "1"}, {"virtual.poison", "1"}});
    auto graph = ParseGraphText(text);
    EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
    if (!graph.ok()) return {};
    onnx::Model model;
    model.graph = *std::move(graph);
    auto parameters = MakeTrainingStep(model, options);
    EXPECT_TRUE(parameters.ok()) << FormatError(parameters.status());
    if (!parameters.ok()) return {};
    auto session = Session::Create(runtime_, std::move(model), {.device = device, .training = true});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    if (!session.ok()) return {};
    std::vector<HostValue> inputs = batch;
    inputs.emplace_back().tensor = Tensor::Scalar<float>(0.05f);
    std::vector<double> losses;
    for (int step = 0; step < kSteps; ++step) {
      auto r = ResultsOf(**session, inputs);
      EXPECT_TRUE(r.ok()) << FormatError(r.status());
      if (!r.ok()) return {};
      losses.push_back((*r)[0]);
    }
    return losses;
  }
  void ExpectLearns(const std::string& text, const std::vector<HostValue>& batch, const TrainingOptions& options = {}) {
    const std::vector<double> got = Losses(text, batch, options, GetParam()), want = Losses(text, batch, options, "host");
    ASSERT_EQ(got.size(), want.size());
    ASSERT_EQ(got.size(), static_cast<size_t>(kSteps));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-3 * want[0]) << "step " << i;
    EXPECT_LT(got.back(), got.front() / 2);
  }

  std::shared_ptr<Runtime> runtime_;
};
INSTANTIATE_TEST_SUITE_P(Devices, TrainingModels, testing::Values("cpu0", "virtual0", "host"));

const Shape kTokens = {2, 6};
const std::vector<HostValue> kText = {Integers(kTokens, {1, 2, 3, 4, 5, 6, 6, 5, 3, 3, 2, 1}),
                                      Integers(kTokens, {2, 3, 4, 5, 6, 0, 5, 3, 3, 2, 1, 0})};

std::string LanguageModel(const std::string& layer, const std::string& name, int gates) {
  return "input x : int64[N,6]\nconst one = int64[1]<1>\n" + Weights("e", {7, 4}) + Weights("w", {1, gates * 5, 4}) +
         Weights("r", {1, gates * 5, 5}) + Weights("b", {1, 2 * gates * 5}) + Weights("f", {5, 7}) +
         "g = Gather(e, x)\nt = Transpose(g) {perm=[1,0,2]}\n" + layer + " = " + name + "(t, w, r, b)\n" +
         "s = Squeeze(y, one)\nu = Transpose(s) {perm=[1,0,2]}\nz = MatMul(u, f)\noutput z\n";
}

TEST_P(TrainingModels, AnLstmLearnsASequence) { ExpectLearns(LanguageModel("y, h, c", "LSTM", 4), kText); }

TEST_P(TrainingModels, AGruLearnsASequence) { ExpectLearns(LanguageModel("y, h", "GRU", 3), kText); }

TEST_P(TrainingModels, ATransformerWithAttentionLearnsASequence) {
  const std::string text = "input x : int64[N,6]\n" + Weights("e", {7, 8}) + Weights("p", {6, 8}) + Weights("n", {8}) +
                           Weights("q", {8, 8}) + Weights("k", {8, 4}) + Weights("v", {8, 4}) + Weights("o", {8, 8}) +
                           Weights("f", {8, 7}) +
                           "g = Gather(e, x)\ni = Add(g, p)\nm = LayerNormalization(i, n)\nqs = MatMul(m, q)\n"
                           "ks = MatMul(m, k)\nvs = MatMul(m, v)\n"
                           "a = Attention(qs, ks, vs) {is_causal=1, q_num_heads=4, kv_num_heads=2}\n"
                           "as = MatMul(a, o)\nj = Add(i, as)\nz = MatMul(j, f)\noutput z\n";
  ExpectLearns(text, kText);
  ExpectLearns(text, kText, {.loss = "token_cross_entropy"});
}

TEST_P(TrainingModels, AModelWithItsLossInTheGraphLearnsItsLabels) {
  const std::string text = "input x : float32[N,3]\ninput t : int64[N]\nconst c = float32[4]<1, 2, 1, 1>\n" +
                           Weights("w", {3, 8}) + Weights("v", {8, 4}) +
                           "a = MatMul(x, w)\nb = Tanh(a)\ns = MatMul(b, v)\n"
                           "l = SoftmaxCrossEntropyLoss(s, t, c) {ignore_index=-1}\noutput l\n";
  ExpectLearns(text, {Numbers({4, 3}), Integers({4}, {3, -1, 0, 1})}, {.loss = "output"});
  onnx::Model model;
  model.graph = *ParseGraphText(text);
  auto parameters = MakeTrainingStep(model, {.loss = "output"});
  ASSERT_TRUE(parameters.ok()) << FormatError(parameters.status());
  EXPECT_THAT(*parameters, testing::ElementsAre("w", "v"));  // not the weights of the classes
}

TEST_P(TrainingModels, ADecoderOfImagesLearnsItsLabels) {
  const std::string text = "input x : float32[N,2,6,5]\nconst s = float32[4]<1, 1, 2, 2>\n" + Weights("w", {6, 2, 3, 3}) +
                           Weights("v", {3, 6, 1, 1}) +
                           "a = Conv(x, w) {pads=[1,1,1,1], strides=[2,2]}\nb = Tanh(a)\n"
                           "u = Resize(b, _, s) {mode=\"linear\"}\nz = Conv(u, v)\noutput z\n";
  std::vector<int64_t> labels(1 * 6 * 6);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i / 12);
  ExpectLearns(text, {Numbers({1, 2, 6, 5}), Integers({1, 6, 6}, labels)});
}

}  // namespace
}  // namespace mge
