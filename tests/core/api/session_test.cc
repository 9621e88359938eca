// SPDX-License-Identifier: Apache-2.0
// Sessions of the public C++ API: descriptions of inputs and outputs, runs by name, choice of outputs, settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PublicSession : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    ASSERT_TRUE(Runtime::Create(options).MoveTo(runtime_).ok());
    model_ = api_models::TwoOutputs();
    ASSERT_TRUE(Tensor::Of<float>({1, 2}, {-3, 4}).MoveTo(x_).ok());
    ASSERT_TRUE(Tensor::Of<int64_t>({1}, {1}).MoveTo(good_).ok());
    ASSERT_TRUE(Tensor::Of<int64_t>({1}, {5}).MoveTo(bad_).ok());
  }
  Status Load(Session* out, SessionOptions options = {}) {
    options.device = "host";
    return Session::LoadBytes(runtime_, model_.data(), model_.size(), options).MoveTo(*out);
  }

  Runtime runtime_;
  std::string model_;
  Tensor x_, good_, bad_;
};

TEST_F(PublicSession, DescribesOutputsAsItDescribesInputs) {
  Session session;
  ASSERT_TRUE(Load(&session).ok());
  EXPECT_EQ(session.output(0).dtype(), MGE_DTYPE_F32);
  EXPECT_EQ(session.output(0).kind(), MGE_VALUE_TENSOR);
  EXPECT_EQ(session.output(0).rank(), 2);
  EXPECT_THAT(session.output(0).dims(), ElementsAre(-1, 2));
  EXPECT_EQ(session.output(0).dim_name(0), "batch");
  EXPECT_EQ(session.output(0).dim_name(1), "");
  EXPECT_EQ(session.input(1).kind(), MGE_VALUE_TENSOR);
  EXPECT_EQ(session.input(0).dim_name(0), "batch");
  EXPECT_EQ(session.input(0).dim_name(9), "");
  EXPECT_EQ(session.output(9).dtype(), MGE_DTYPE_UNDEFINED);
  EXPECT_EQ(session.output(9).rank(), -1);
  ASSERT_EQ(session.metadata_count(), 1u);
  EXPECT_EQ(session.metadata_key(0), "author");
  EXPECT_EQ(session.metadata_value(0), "me");
  EXPECT_EQ(session.metadata_key(1), "");
  EXPECT_GE(session.threads(), 1);
}

TEST_F(PublicSession, RunsByNameInAnyOrder) {
  Session session;
  ASSERT_TRUE(Load(&session).ok());
  std::vector<Tensor> out;
  Status s = session.Run({&good_, &x_}, out, {.input_names = {"i", "x"}, .output_names = {"z", "y"}});
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_THAT(out[0].data<float>(), ElementsAre(8));
  EXPECT_THAT(out[1].data<float>(), ElementsAre(0, -4));
}

TEST_F(PublicSession, ComputesOnlyTheOutputsThatTheRunNames) {
  Session session;
  ASSERT_TRUE(Load(&session).ok());
  std::vector<Tensor> out;
  EXPECT_FALSE(session.Run({&x_, &bad_}, out).ok());
  out.clear();
  Status s = session.Run({&x_, &bad_}, out, {.input_names = {"x", "i"}, .output_names = {"y"}});
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_THAT(out[0].data<float>(), ElementsAre(0, -4));
}

TEST_F(PublicSession, NamesTheInputOrOutputThatIsWrong) {
  Session session;
  ASSERT_TRUE(Load(&session).ok());
  std::vector<Tensor> out;
  Status s = session.Run({&x_}, out, {.input_names = {"x"}, .output_names = {"y"}});
  EXPECT_EQ(s.id(), 307);
  EXPECT_THAT(std::string(s.title()), HasSubstr("input 'i' is not given"));
  s = session.Run({&x_, &x_}, out, {.input_names = {"x", "x"}, .output_names = {"y"}});
  EXPECT_THAT(std::string(s.text()), HasSubstr("'x' is named twice"));
  s = session.Run({&x_, &good_}, out, {.input_names = {"x", "ii"}, .output_names = {"y"}});
  EXPECT_THAT(std::string(s.text()), HasSubstr("no input 'ii'"));
  s = session.Run({&x_, &good_}, out, {.input_names = {"x", "i"}, .output_names = {"yy"}});
  EXPECT_THAT(std::string(s.text()), HasSubstr("no output 'yy'"));
}

TEST_F(PublicSession, ReturnsMapsAsKeysAndValues) {
  model_ = api_models::LabelledScores();
  Session session;
  ASSERT_TRUE(Load(&session).ok());
  EXPECT_EQ(session.output(0).kind(), MGE_VALUE_SEQUENCE);
  Tensor scores, map, keys, values;
  ASSERT_TRUE(Tensor::Of<float>({2, 2}, {0.25f, 0.75f, 1, 0}).MoveTo(scores).ok());
  std::vector<Tensor> out;
  Status s = session.Run({&scores}, out);
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(out[0].kind(), MGE_VALUE_SEQUENCE);
  ASSERT_EQ(out[0].part_count(), 2u);
  ASSERT_TRUE(out[0].Part(1).MoveTo(map).ok());
  EXPECT_EQ(map.kind(), MGE_VALUE_MAP);
  ASSERT_EQ(map.part_count(), 2u);
  ASSERT_TRUE(map.Part(0).MoveTo(keys).ok());
  ASSERT_TRUE(map.Part(1).MoveTo(values).ok());
  EXPECT_EQ(keys.string(1), "yes");
  EXPECT_THAT(values.data<float>(), ElementsAre(1, 0));
}

TEST_F(PublicSession, ReturnsIntermediateValuesAsOutputs) {
  Session session;
  Status s = Load(&session, {.outputs = {"t", "y"}});
  ASSERT_TRUE(s.ok()) << s.text();
  std::vector<Tensor> out;
  s = session.Run({&x_, &bad_}, out);  // z is not computed
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_EQ(session.output(0).name(), "t");
  EXPECT_THAT(out[0].data<float>(), ElementsAre(0, 4));
  EXPECT_THAT(out[1].data<float>(), ElementsAre(0, -4));
  EXPECT_THAT(std::string(Load(&session, {.outputs = {"tt"}}).text()), HasSubstr("no value 'tt'"));
}

TEST_F(PublicSession, HasSettingsOfItsOwn) {
  Session limited, other;
  ASSERT_TRUE(Load(&limited, {.settings = {"run.timeout_seconds=1e-9"}}).ok());
  ASSERT_TRUE(Load(&other).ok());
  std::vector<Tensor> out;
  EXPECT_EQ(limited.Run({&x_, &good_}, out).id(), 12401);
  EXPECT_TRUE(other.Run({&x_, &good_}, out).ok());
  Status s = Load(&other, {.settings = {"threads=2"}});
  EXPECT_EQ(s.id(), 204);
  EXPECT_THAT(std::string(s.text()), HasSubstr("once per runtime"));
  EXPECT_EQ(Load(&other, {.settings = {"run.timeuot=1"}}).id(), 203);
  EXPECT_EQ(Load(&other, {.settings = {"run.timeout_seconds=soon"}}).id(), 202);
  EXPECT_EQ(Load(&other, {.settings = {"run.timeout_seconds"}}).id(), 201);
}

TEST_F(PublicSession, GeneratesInputsThatFitTheModel) {
  Session session;
  ASSERT_TRUE(Load(&session).ok());
  const auto example = session.ExampleInputs();
  ASSERT_TRUE(example.ok()) << example.status().text();
  EXPECT_THAT(example->inputs[0].dims(), ElementsAre(1, 2));
  EXPECT_THAT(example->report, HasSubstr("a batch of 1"));
  EXPECT_TRUE(session.Run({&example->inputs[0], &example->inputs[1]}).ok());  // the index is in range
  const auto other = session.ExampleInputs({.shapes = {"x=3x2"}});
  ASSERT_TRUE(other.ok()) << other.status().text();
  EXPECT_THAT(other->inputs[0].dims(), ElementsAre(3, 2));
  EXPECT_EQ(session.ExampleInputs({.shapes = {"w=3x2"}}).status().exit_code(), 2);
  EXPECT_EQ(session.ExampleInputs({.shapes = {"x=3y2"}}).status().exit_code(), 2);
}

TEST_F(PublicSession, InspectsAFileThatItCannotLoad) {
  std::string model = api_models::TwoOutputs();
  for (size_t at; (at = model.find("Relu")) != std::string::npos;) model.replace(at, 4, "Rolu");
  const std::string path = testing::TempDir() + "/unknown_operator.onnx";
  std::ofstream(path, std::ios::binary) << model;
  Session session;
  EXPECT_EQ(Session::Load(runtime_, path, {.device = "host"}).MoveTo(session).id(), 401);
  std::string json;
  Status s = runtime_.ModelReport(path, "mge.model/1").MoveTo(json);
  ASSERT_TRUE(s.ok()) << s.text();
  EXPECT_THAT(json, HasSubstr("MGE has no operator 'Rolu'"));
  EXPECT_THAT(json, HasSubstr("Relu"));  // the nearest known operator
  EXPECT_TRUE(runtime_.ModelReport(path, "mge.nodes/1").MoveTo(json).ok());
  EXPECT_EQ(runtime_.ModelReport(path, "mge.other/1").MoveTo(json).id(), 207);
  std::remove(path.c_str());
}

TEST(PublicTensor, ExplainsWhyTheNumberOfValuesDoesNotFitTheShape) {
  Tensor t;
  Status s = Tensor::Of<float>({2, 3}, {1, 2}).MoveTo(t);
  EXPECT_EQ(s.id(), 305);
  EXPECT_THAT(std::string(s.text()), HasSubstr("24 bytes"));
  EXPECT_FALSE(t);
  ASSERT_TRUE(Tensor::Of<F16>({2}, {F16(1.5f), F16(-2)}).MoveTo(t).ok());
  EXPECT_EQ(t.dtype(), MGE_DTYPE_F16);
  EXPECT_EQ(t.data<F16>()[0], 1.5f);
  ASSERT_TRUE(Tensor::Of<BF16>({1}, {BF16(3)}).MoveTo(t).ok());
  EXPECT_EQ(t.dtype(), MGE_DTYPE_BF16);
}

TEST(PublicVersion, IsThatOfTheLibrary) {
  EXPECT_EQ(mge_version_number(), MGE_VERSION);
  EXPECT_EQ(std::string(mge_version()), std::to_string(MGE_VERSION_MAJOR) + "." + std::to_string(MGE_VERSION_MINOR) + "." +
                                            std::to_string(MGE_VERSION_PATCH));
}

TEST(PublicArguments, AreNamedInTheErrorIfTheyAreNull) {
  mge_tensor* t = nullptr;
  Status s(mge_tensor_read(nullptr, &t));
  EXPECT_EQ(s.id(), 207);
  EXPECT_THAT(std::string(s.text()), HasSubstr("mge_tensor_read: argument 'path' is NULL"));
  Status create(mge_tensor_create(99, nullptr, 0, &t));
  EXPECT_THAT(std::string(create.text()), HasSubstr("dtype 99"));
}

}  // namespace
}  // namespace mge
