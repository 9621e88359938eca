// SPDX-License-Identifier: Apache-2.0
// Training sessions of the public API: parameters, and the model that they write.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TrainingSession : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge-training-XXXXXX";
    folder_ = mkdtemp(name);
    std::ofstream(folder_ + "/model.onnx", std::ios::binary) << model_;
    RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    ASSERT_TRUE(Runtime::Create(options, &runtime_).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  SessionOptions Options(bool training) const {
    SessionOptions options;
    options.device = "host";
    if (training) options.training = TrainingOptions{.loss = "mse"};
    return options;
  }
  // Runs a step for x = 2 and the label 0. Returns the loss.
  float Step(Session& session) {
    Tensor x, labels, rate;
    EXPECT_TRUE(Tensor::Of<float>({1, 1}, {2}, &x).ok());
    EXPECT_TRUE(Tensor::Of<float>({1, 1}, {0}, &labels).ok());
    EXPECT_TRUE(Tensor::Of<float>({}, {0.125f}, &rate).ok());
    std::vector<Tensor> outputs;
    const Tensor* inputs[] = {&x, &labels, &rate};
    const Status s = session.Run(inputs, &outputs);
    EXPECT_TRUE(s.ok()) << s.text();
    return s.ok() ? outputs[0].data<float>()[0] : -1;
  }

  std::string rest_[2];  // parts of the model that a training does not change
  const std::string model_ = api_models::Line(rest_);
  std::string folder_;
  Runtime runtime_;
};

TEST_F(TrainingSession, WritesAModelWithItsParametersThatOtherSessionsLoad) {
  Session session;
  const Status loaded = Session::Load(runtime_, folder_ + "/model.onnx", Options(true), &session);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  ASSERT_EQ(session.parameter_count(), 2u);
  EXPECT_EQ(session.parameter_name(0), "w");
  EXPECT_EQ(session.parameter_name(1), "b");
  EXPECT_EQ(Step(session), 6.25f);  // (2 w + b)^2; the gradient is 2 * 2.5 * (2, 1)
  Tensor w;
  ASSERT_TRUE(session.ReadState("w", &w).ok());
  EXPECT_THAT(w.data<float>(), ElementsAre(1 - 0.125f * 10));
  const std::string written = folder_ + "/trained.onnx";
  const Status saved = session.Save(written);
  ASSERT_TRUE(saved.ok()) << saved.text();

  Session again, plain;
  ASSERT_TRUE(Session::Load(runtime_, written, Options(true), &again).ok());
  EXPECT_EQ(Step(again), Step(session));  // the second step of both
  ASSERT_TRUE(Session::Load(runtime_, written, Options(false), &plain).ok());
  EXPECT_EQ(plain.input_count(), 1u);
  EXPECT_EQ(plain.parameter_count(), 0u);
}

TEST_F(TrainingSession, KeepsAllOtherBytesOfTheModel) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(true), &session).ok());
  const std::string written = folder_ + "/same.onnx";
  ASSERT_TRUE(session.Save(written).ok());  // before any step
  std::ifstream in(written, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  for (const std::string& part : rest_) EXPECT_THAT(bytes, HasSubstr(part));
}

TEST_F(TrainingSession, OfAModelInMemoryCanWriteItToo) {
  Session session;
  ASSERT_TRUE(Session::LoadBytes(runtime_, model_.data(), model_.size(), Options(true), &session).ok());
  EXPECT_TRUE(session.Save(folder_ + "/from_memory.onnx").ok());
}

TEST_F(TrainingSession, ThatDoesNotTrainCannotWriteAModel) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(false), &session).ok());
  EXPECT_THAT(session.Save(folder_ + "/none.onnx").text(), HasSubstr("the session does not train"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/none.onnx"));
}

}  // namespace
}  // namespace mge
