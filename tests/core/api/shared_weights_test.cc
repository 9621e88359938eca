// SPDX-License-Identifier: Apache-2.0
// The weights of a file are in memory once: not beside the form that a kernel makes of them, and not for each session.
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/core/api/model_folder.h"

namespace mge {
namespace {

using nlohmann::json;

class SharedWeights : public ModelFolder {
 protected:
  static constexpr int64_t kSize = 1024, kWeightBytes = kSize * kSize * 4;

  // Writes a model with two weights: one that a kernel packs, and one that it reads as it is. With `folds`, a third one is
  // folded first.
  void WriteModel(const std::string& name, bool folds) const { Write(name, api_models::LargeWeights(kSize, 0, 5, folds)); }
  Session Load(const std::string& name, const std::string& device = "cpu0") {
    Session session;
    const Status status = ModelFolder::Load(name, &session, device);
    EXPECT_TRUE(status.ok()) << status.text();
    return session;
  }
  static std::vector<float> Run(Session& session, int64_t rows = 1) {
    std::vector<Tensor> outputs;
    const Status status = RunRows(session, kSize, rows, 2, &outputs);
    EXPECT_TRUE(status.ok()) << status.text();
    const auto y = outputs[0].data<float>();
    return {y.begin(), y.end()};
  }
  static int64_t Charged(const Session& session) {
    std::string text;
    EXPECT_TRUE(session.Report("mge.memory/1").MoveTo(text).ok());
    return json::parse(text)["device_charged_bytes"];
  }
};

TEST_F(SharedWeights, AreInMemoryOnce) {
  for (const bool folds : {false, true}) {
    WriteModel("m.onnx", folds);
    Session session = Load("m.onnx");
    Run(session);
    EXPECT_LT(Charged(session), 2 * kWeightBytes + kWeightBytes / 2) << "folds " << folds;
  }
}

TEST_F(SharedWeights, AreThoseOfTheFirstSessionInTheSecond) {
  for (const bool folds : {false, true}) {
    WriteModel("m.onnx", folds);
    Session first = Load("m.onnx");
    const std::vector<float> expected = Run(first);
    const int64_t before = Charged(first);
    Session second = Load("m.onnx");
    EXPECT_EQ(Run(second), expected);
    EXPECT_LT(Charged(second) - before, kWeightBytes / 4) << "folds " << folds;
    first = Session();
    EXPECT_EQ(Run(second), expected) << "the weights live as long as a session";
    EXPECT_EQ(Run(second, 64).size(), 64u * kSize);
  }
}

TEST_F(SharedWeights, OfAnotherFileAreOthers) {
  WriteModel("a.onnx", false);
  WriteModel("b.onnx", true);
  Session a = Load("a.onnx"), b = Load("b.onnx");
  const std::vector<float> of_a = Run(a), of_b = Run(b);
  EXPECT_NE(of_a, of_b);
  EXPECT_EQ(Run(a), of_a);
}

}  // namespace
}  // namespace mge
