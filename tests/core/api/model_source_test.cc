// SPDX-License-Identifier: Apache-2.0
// Models that come from memory, through a reader and in pieces, through the C API. Who keeps the memory; progress and
// cancellation of a load.
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mge/mge.h"
#include "tests/support/onnx_builder.h"

namespace mge {
namespace {

using namespace onnx_builder;  // NOLINT: its functions build models
using testing::HasSubstr;

constexpr int64_t kSize = 64;

// The model y = x w, whose weights are in the file "w.bin".
std::string WithExternalWeights() {
  return ModelProto(
      {.graph = GraphProto({.nodes = {NodeProto("MatMul", {"x", "w"}, {"y"})},
                            .inputs = {ValueInfo("x", DType::kF32, {"N", kSize})},
                            .outputs = {ValueInfo("y", DType::kF32, {"N", kSize})},
                            .initializers = {ExternalTensor("w", DType::kF32, {kSize, kSize}, {{"location", "w.bin"}})}})});
}

class ModelSource : public testing::Test {
 protected:
  void SetUp() override {
    mge_runtime_options options;
    mge_runtime_options_init(&options);
    const char* const folder = MGE_BINARY_DIR "/lib/mge/plugins";
    options.plugin_directories = &folder;
    options.plugin_directory_count = 1;
    options.no_built_in_plugins = options.no_environment = 1;
    ASSERT_EQ(mge_runtime_create(&options, &runtime_), nullptr);
    mge_model_source_init(&source_);
    mge_session_options_init(&options_);
    options_.device = "cpu0";
    file_ = {"w.bin", weights_->data(), weights_->size() * sizeof(float)};
  }
  void TearDown() override {
    mge_session_release(session_);
    mge_runtime_release(runtime_);
  }

  // Loads the source, and returns the text of the error, or "".
  std::string Load() {
    mge_status* const status = mge_session_load_from(runtime_, &source_, &options_, &session_);
    std::string text = status ? mge_status_text(status) : "";
    mge_status_release(status);
    return text;
  }
  void GiveModel() {
    source_.data = model_->data();
    source_.size = model_->size();
  }
  void GiveWeights() {
    source_.files = &file_;
    source_.file_count = 1;
  }
  // Counts the releases, and then overwrites the memory of the application.
  void CountReleases() {
    source_.state = this;
    source_.release = [](void* state) {
      auto* self = static_cast<ModelSource*>(state);
      ++self->releases_;
      std::fill(self->model_->begin(), self->model_->end(), '\xff');
      std::fill(self->weights_->begin(), self->weights_->end(), -1.0F);
    };
  }
  // Runs the session on ones, and returns the first element of the result, or -1.
  float Run() {
    const int64_t dims[] = {1, kSize};
    std::vector<float> ones(kSize, 1);
    mge_tensor *x = nullptr, *y = nullptr;
    EXPECT_EQ(mge_tensor_wrap(MGE_DTYPE_F32, dims, 2, ones.data(), kSize * sizeof(float), &x), nullptr);
    mge_status* const status = mge_session_run(session_, &x, 1, &y, 1, nullptr, nullptr);
    EXPECT_EQ(status, nullptr) << mge_status_text(status);
    const float out = y ? *static_cast<float*>(mge_tensor_data(y)) : -1;
    mge_tensor_release(x);
    mge_tensor_release(y);
    mge_status_release(status);
    return out;
  }

  mge_runtime* runtime_ = nullptr;
  mge_session* session_ = nullptr;
  mge_model_source source_;
  mge_session_options options_;
  std::shared_ptr<std::string> model_ = std::make_shared<std::string>(WithExternalWeights());
  std::shared_ptr<std::vector<float>> weights_ = std::make_shared<std::vector<float>>(kSize * kSize, 0.5F);
  mge_model_file file_ = {};
  int releases_ = 0;
};

TEST_F(ModelSource, InMemoryIsReleasedOnceWhenNobodyUsesItAnyMore) {
  GiveModel();
  GiveWeights();
  CountReleases();
  ASSERT_EQ(Load(), "");
  EXPECT_EQ(Run(), kSize * 0.5F);
  EXPECT_EQ(Run(), kSize * 0.5F);
  mge_session_release(session_);
  session_ = nullptr;
  EXPECT_EQ(releases_, 1);
}

TEST_F(ModelSource, IsReleasedIfTheLoadFails) {
  GiveModel();  // without its weights
  CountReleases();
  const std::string error = Load();
  EXPECT_THAT(error, HasSubstr("w.bin"));
  EXPECT_THAT(error, HasSubstr("files in memory"));
  EXPECT_EQ(releases_, 1);
}

TEST_F(ModelSource, MayBeReadInPieces) {
  struct Reader {
    const std::string* model;
    size_t at = 0;
  } reader{model_.get()};
  source_.state = &reader;
  source_.read = [](void* state, void* buffer, uint64_t capacity) {
    auto* r = static_cast<Reader*>(state);
    const size_t n = std::min<size_t>({7, static_cast<size_t>(capacity), r->model->size() - r->at});
    std::memcpy(buffer, r->model->data() + r->at, n);
    r->at += n;
    return static_cast<int64_t>(n);
  };
  GiveWeights();
  ASSERT_EQ(Load(), "");
  EXPECT_EQ(Run(), kSize * 0.5F);
}

TEST_F(ModelSource, WhoseReaderFailsIsAnError) {
  source_.read = [](void*, void*, uint64_t) { return int64_t{-5}; };
  EXPECT_THAT(Load(), HasSubstr("it returned -5 after 0 bytes"));
  source_.read = [](void*, void*, uint64_t capacity) { return static_cast<int64_t>(capacity) + 1; };
  EXPECT_THAT(Load(), HasSubstr("it returned"));
}

TEST_F(ModelSource, NeedsExactlyOneOrigin) {
  EXPECT_THAT(Load(), HasSubstr("exactly one of path, data and read"));
  GiveModel();
  source_.path = "model.onnx";
  EXPECT_THAT(Load(), HasSubstr("exactly one of path, data and read"));
}

TEST_F(ModelSource, WithPiecesThatAreTooSmallOrHaveNoSizeIsAnError) {
  GiveModel();
  GiveWeights();
  file_.size = 100;
  EXPECT_THAT(Load(), HasSubstr("file 'w.bin' has 100 bytes; 16384 are needed from byte 0 on"));
  source_.file_size = 0;
  EXPECT_THAT(Load(), HasSubstr("mge_model_source_init()"));
}

TEST_F(ModelSource, ReportsTheProgressOfLoadingAndPlanning) {
  struct Stage {
    uint64_t done = 0, total = 0;
    bool ordered = true;
  };
  std::map<std::string, Stage> stages;
  options_.progress_state = &stages;
  options_.progress = [](void* state, const char* name, uint64_t done, uint64_t total) {
    Stage& s = (*static_cast<std::map<std::string, Stage>*>(state))[name];
    s = {done, total, s.ordered && done >= s.done};
  };
  GiveModel();
  GiveWeights();
  ASSERT_EQ(Load(), "");
  EXPECT_EQ(stages["read"].done, 1u);
  EXPECT_GT(stages["optimize"].total, 1u);
  EXPECT_FALSE(stages.contains("kernels"));
  Run();
  EXPECT_GE(stages["weights"].total, kSize * kSize * sizeof(float));
  EXPECT_EQ(stages.size(), 4u);
  for (const auto& [name, stage] : stages) {
    EXPECT_EQ(stage.done, stage.total) << name;
    EXPECT_TRUE(stage.ordered) << name;
  }
}

TEST_F(ModelSource, KeepsTheLatestProgressInAnInbox) {
  mge_inbox* inbox = nullptr;
  ASSERT_EQ(mge_inbox_create(&inbox), nullptr);
  options_.progress_inbox = inbox;
  GiveModel();
  GiveWeights();
  ASSERT_EQ(Load(), "");
  Run();
  std::map<std::string, int> times;
  mge_string* stage = nullptr;
  uint64_t done = 0, total = 0;
  while (mge_inbox_take_progress(inbox, &stage, &done, &total)) {
    const std::string name = mge_string_data(stage);
    mge_string_release(stage);
    ++times[name];
    EXPECT_EQ(done, total) << name;
    EXPECT_GT(total, 0u) << name;
  }
  EXPECT_EQ(times, (std::map<std::string, int>{{"read", 1}, {"optimize", 1}, {"kernels", 1}, {"weights", 1}}));
  pollfd polled = {mge_inbox_descriptor(inbox), POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, 0), 0);  // empty again
  options_.progress = [](void*, const char*, uint64_t, uint64_t) {};
  EXPECT_THAT(Load(), HasSubstr("both progress and progress_inbox are set"));
  mge_inbox_release(inbox);
}

TEST_F(ModelSource, OfACancelledLoadIsReleasedAndTheRuntimeGoesOn) {
  mge_run_control* control = nullptr;
  ASSERT_EQ(mge_run_control_create(&control), nullptr);
  options_.control = control;
  options_.progress_state = control;
  options_.progress = [](void* state, const char* stage, uint64_t, uint64_t) {
    if (stage == std::string("optimize")) mge_run_control_cancel(static_cast<mge_run_control*>(state));
  };
  GiveModel();
  GiveWeights();
  std::string error = Load();
  EXPECT_THAT(error, HasSubstr("cancel"));
  options_.progress = nullptr;
  mge_run_control_reset(control);
  ASSERT_EQ(Load(), "");
  EXPECT_EQ(Run(), kSize * 0.5F);
  mge_run_control_release(control);
}

}  // namespace
}  // namespace mge
