// SPDX-License-Identifier: Apache-2.0
// A model of PyTorch with tied weights that is trained and saved stays one with tied weights.
#include <gmock/gmock.h>
#include <unistd.h>

#include <vector>

#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

class TiedWeights : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    ASSERT_TRUE(Runtime::Create(options).MoveTo(runtime_).ok());
  }
  static SessionOptions Options(bool trains) {
    SessionOptions options;
    options.device = "host";
    if (trains) options.training = TrainingOptions{.loss = "mse"};
    return options;
  }
  std::vector<float> Weight(Session& session) {
    Tensor t;
    const Status s = session.ReadState("emb.weight").MoveTo(t);
    EXPECT_TRUE(s.ok()) << s.text();
    if (!s.ok()) return {};
    return {t.data<float>().begin(), t.data<float>().end()};
  }
  // Runs a step of training, or the model alone. Returns the last output.
  std::vector<float> Run(Session& session, bool trains) {
    Tensor ids, labels, rate;
    EXPECT_TRUE(Tensor::Of<int64_t>({2}, {0, 2}).MoveTo(ids).ok());
    EXPECT_TRUE(Tensor::Of<float>({2, 3}, {1, 0, 0, 0, 0, 1}).MoveTo(labels).ok());
    EXPECT_TRUE(Tensor::Of<float>({}, {0.0078125f}).MoveTo(rate).ok());
    std::vector<const Tensor*> inputs = {&ids};
    if (trains) inputs.insert(inputs.end(), {&labels, &rate});
    std::vector<Tensor> outputs;
    const Status s = session.Run(inputs, outputs);
    EXPECT_TRUE(s.ok()) << s.text();
    if (!s.ok() || outputs.empty()) return {};
    return {outputs.back().data<float>().begin(), outputs.back().data<float>().end()};
  }

  const std::string model_ = api_models::TiedEmbedding();
  Runtime runtime_;
};

TEST_F(TiedWeights, AreEqualInTheSavedModelAndTrainTogetherAfterItIsLoaded) {
  Session first, plain, second;
  const Status loaded = Session::LoadBytes(runtime_, model_.data(), model_.size(), Options(true)).MoveTo(first);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  ASSERT_EQ(first.parameter_count(), 1u);
  Run(first, true);
  char file[] = "/tmp/mge-tied-XXXXXX";
  close(mkstemp(file));
  ASSERT_TRUE(first.Save(file).ok());

  ASSERT_TRUE(Session::Load(runtime_, file, Options(false)).MoveTo(plain).ok());
  const std::vector<float> w = Weight(first);
  std::vector<float> expected;
  for (const size_t row : {0, 2}) {
    for (size_t other = 0; other < 3; ++other) {
      expected.push_back(w[2 * row] * w[2 * other] + w[2 * row + 1] * w[2 * other + 1]);
    }
  }
  EXPECT_THAT(Run(plain, false), testing::Pointwise(testing::FloatEq(), expected));

  ASSERT_TRUE(Session::Load(runtime_, file, Options(true)).MoveTo(second).ok());
  unlink(file);
  ASSERT_EQ(second.parameter_count(), 1u);
  Run(first, true);
  Run(second, true);
  EXPECT_EQ(Weight(second), Weight(first));
  EXPECT_NE(Weight(first), w);
}

}  // namespace
}  // namespace mge
