// SPDX-License-Identifier: Apache-2.0
// A model's file that changes while a session is open. No run gives other results, and the process does not crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/core/api/model_folder.h"

namespace mge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// y = x * w + table[0], with weights that a kernel packs, and a table that is read as it is.
class ChangedFile : public ModelFolder {
 protected:
  static constexpr int64_t kSize = 256;
  void SetUp() override {
    ModelFolder::SetUp();
    WriteModel("m.onnx", 1);
  }
  void WriteModel(const std::string& name, float weight) const {
    Write(name, api_models::LargeWeights(kSize, weight, 1, false));
  }
  Status Load(Session* out) { return ModelFolder::Load("m.onnx", out); }
  // Runs with `rows` rows of ones. Returns the first result, or the error.
  static std::string Run(Session& session, int64_t rows) {
    std::vector<Tensor> outputs;
    const Status status = RunRows(session, kSize, rows, 0, &outputs);
    return status.ok() ? std::to_string(outputs[0].data<float>()[0]) : std::string(status.text());
  }
};

TEST_F(ChangedFile, ThatIsTruncatedIsNoticedOrNotNeeded) {
  Session before, planned;
  ASSERT_TRUE(Load(&before).ok());
  ASSERT_TRUE(Load(&planned).ok());
  EXPECT_EQ(Run(planned, 1), "257.000000");
  ASSERT_EQ(truncate(Path("m.onnx").c_str(), 5), 0);
  EXPECT_EQ(Run(planned, 1), "257.000000");
  const std::string again = Run(planned, 64);
  EXPECT_TRUE(again == "257.000000" || again.find("has changed since it was opened") != std::string::npos) << again;
  planned = Session();  // with it the packed weights, which the other session would use
  EXPECT_THAT(Run(before, 1), HasSubstr("has changed since it was opened"));
  EXPECT_THAT(Run(before, 1), HasSubstr("load the model again"));
  Session fresh;
  EXPECT_FALSE(Load(&fresh).ok());
  WriteModel("m.onnx", 2);
  ASSERT_TRUE(Load(&fresh).ok());
  EXPECT_EQ(Run(fresh, 1), "514.000000");
}

TEST_F(ChangedFile, ThatIsOverwrittenNeverMixesOldAndNewWeights) {
  Session session;
  ASSERT_TRUE(Load(&session).ok());
  EXPECT_EQ(Run(session, 1), "257.000000");
  WriteModel("m.onnx", 2);  // the same size
  for (const int64_t rows : {1, 2, 3, 64, 500}) {
    const std::string result = Run(session, rows);
    EXPECT_TRUE(result == "257.000000" || result.find("has changed since it was opened") != std::string::npos) << result;
  }
  Session fresh;
  ASSERT_TRUE(Load(&fresh).ok());
  EXPECT_EQ(Run(fresh, 1), "514.000000") << "the packed weights of the old file are not those of the new one";
}

TEST_F(ChangedFile, ThatIsReplacedLeavesOpenSessionsAsTheyWere) {
  Session session;
  ASSERT_TRUE(Load(&session).ok());
  WriteModel("new.onnx", 2);
  fs::rename(Path("new.onnx"), Path("m.onnx"));
  EXPECT_EQ(Run(session, 1), "257.000000");
  fs::remove(Path("m.onnx"));
  EXPECT_EQ(Run(session, 64), "257.000000");
}

TEST_F(ChangedFile, DoesNotEndUpInASavedTraining) {
  SessionOptions options;
  options.device = "cpu0";
  options.training = TrainingOptions();
  options.training->loss = "mse";
  Session session;
  const Status loaded = Session::Load(runtime_, Path("m.onnx"), options).MoveTo(session);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_TRUE(session.Save(Path("saved.onnx")).ok());
  WriteModel("m.onnx", 2);
  const Status saved = session.Save(Path("again.onnx"));
  EXPECT_THAT(std::string(saved.text()), HasSubstr("has changed since it was opened"));
  EXPECT_FALSE(fs::exists(Path("again.onnx")));
}

}  // namespace
}  // namespace mge
