// SPDX-License-Identifier: Apache-2.0
// A group of ranks through the public API, and ONNX models with the operators mge.AllReduce and mge.Assign.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mge/mge.h"
#include "tests/core/api/load_bytes.h"
#include "tests/support/onnx_builder.h"

namespace mge {
namespace {

using namespace onnx_builder;

// y = AllReduce(x)
std::string SumModel() {
  return ModelProto({.graph = GraphProto({.nodes = {NodeProto("AllReduce", {"x"}, {"y"}, {.domain = "mge"})},
                                          .inputs = {ValueInfo("x", DType::kF32, {2})},
                                          .outputs = {ValueInfo("y", DType::kF32, {2})}}),
                     .opsets = {{"", 13}, {"mge", 1}}});
}

// A runtime with two virtual devices, and a session per rank.
class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPlugin)) GTEST_SKIP() << "the backend virtual is not built";
    const char* plugins[] = {kPlugin};
    const char* settings[] = {"virtual.devices=2", "debug.collectives=1"};
    mge_runtime_options options = {};
    options.struct_size = sizeof(options);
    options.no_built_in_plugins = options.no_environment = 1;
    options.plugin_directories = plugins;
    options.plugin_directory_count = 1;
    options.settings = settings;
    options.setting_count = std::size(settings);
    options.log = [](void* self, int32_t, const char* message, size_t size) {
      auto* ranks = static_cast<Ranks*>(self);
      std::lock_guard lock(ranks->mutex_);
      ranks->messages_.emplace_back(message, size);
    };
    options.log_state = this;
    ASSERT_EQ(mge_runtime_create(&options, &runtime_), nullptr);
  }
  void TearDown() override {
    for (mge_session* s : sessions_) mge_session_release(s);
    mge_runtime_release(runtime_);
  }
  // Loads a sum of both ranks on virtual0 and on virtual1.
  void LoadSums() {
    mge_string* id = nullptr;
    ASSERT_EQ(mge_collective_id(runtime_, "virtual0", &id), nullptr);
    const std::string model = SumModel();
    for (int rank = 0; rank < 2; ++rank) {
      const std::string texts[] = {"collective.ranks=2", "collective.rank=" + std::to_string(rank),
                                   "collective.id=" + std::string(mge_string_data(id))};
      const char* settings[] = {texts[0].c_str(), texts[1].c_str(), texts[2].c_str()};
      mge_session_options options = {};
      options.struct_size = sizeof(options);
      options.device = rank ? "virtual1" : "virtual0";
      options.settings = settings;
      options.setting_count = 3;
      mge_status* status = LoadBytes(runtime_, model, &options, &sessions_[rank]);
      ASSERT_EQ(status, nullptr) << mge_status_text(status);
    }
    mge_string_release(id);
  }
  // Runs a session with the input {a, b} and returns the output.
  static std::string Run(mge_session* session, float a, float b) {
    const int64_t dims[] = {2};
    mge_tensor *input = nullptr, *output = nullptr;
    if (mge_tensor_create(MGE_DTYPE_F32, dims, 1, &input)) return "no input";
    auto* in = static_cast<float*>(mge_tensor_data(input));
    in[0] = a, in[1] = b;
    mge_status* status = mge_session_run(session, &input, 1, &output, 1, nullptr, nullptr);
    std::string text = status ? mge_status_text(status) : "";
    if (!status) {
      auto* out = static_cast<const float*>(mge_tensor_data(output));
      text = std::to_string(out[0]) + " " + std::to_string(out[1]);
    }
    mge_status_release(status);
    mge_tensor_release(input);
    mge_tensor_release(output);
    return text;
  }

  static constexpr char kPlugin[] = MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so";
  mge_runtime* runtime_ = nullptr;
  mge_session* sessions_[2] = {};
  std::mutex mutex_;
  std::vector<std::string> messages_;  // guarded by mutex_
};

// Runs of one rank must use the communicator in one order, though several threads of the rank run its session.
TEST_F(Ranks, ReduceInRunsOfSeveralThreads) {
  ASSERT_NO_FATAL_FAILURE(LoadSums());
  constexpr int kThreads = 3, kRuns = 10;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2 * kThreads; ++i) {
    threads.emplace_back([&, session = sessions_[i % 2]] {
      for (int run = 0; run < kRuns; ++run) right += Run(session, 1, 2) == "2.000000 4.000000";
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 2 * kThreads * kRuns);
}

TEST_F(Ranks, ReduceWithAnIdOfTheApi) {
  ASSERT_NO_FATAL_FAILURE(LoadSums());
  std::string results[2];
  std::thread other([&] { results[1] = Run(sessions_[1], 10, 20); });
  results[0] = Run(sessions_[0], 1, 2);
  other.join();
  for (const std::string& r : results) EXPECT_EQ(r, "11.000000 22.000000");
}

// debug.collectives is set in this runtime.
TEST_F(Ranks, LogEachExecutionWithItsRankAndNode) {
  ASSERT_NO_FATAL_FAILURE(LoadSums());
  for (int run = 0; run < 2; ++run) {
    std::thread other([&] { Run(sessions_[1], 10, 20); });
    Run(sessions_[0], 1, 2);
    other.join();
  }
  for (const char* rank : {"0", "1"}) {
    const std::string want = std::string("collective: executing AllReduce, rank = ") + rank + " of 2, key = ";
    std::lock_guard lock(mutex_);
    EXPECT_EQ(std::ranges::count_if(messages_, [&](const std::string& m) { return m.find(want) != m.npos; }), 2) << want;
  }
}

TEST_F(Ranks, ADeviceWithoutCollectivesGivesNoId) {
  mge_string* id = nullptr;
  mge_status* status = mge_collective_id(runtime_, "host", &id);
  ASSERT_NE(status, nullptr);
  EXPECT_NE(std::string(mge_status_text(status)).find("has no collective operations"), std::string::npos)
      << mge_status_text(status);
  mge_status_release(status);
}

// y = Assign(w, w + x): the initializer w keeps the sum of all inputs.
TEST_F(Ranks, AnInitializerThatAModelAssignsIsAState) {
  const std::string model =
      ModelProto({.graph = GraphProto({.nodes = {NodeProto("Add", {"w", "x"}, {"s"}),
                                                 NodeProto("Assign", {"w", "s"}, {"y"}, {.domain = "mge"})},
                                       .inputs = {ValueInfo("x", DType::kF32, {2})},
                                       .outputs = {ValueInfo("y", DType::kF32, {2})},
                                       .initializers = {FloatTensor("w", {2}, {0, 0})}}),
                  .opsets = {{"", 13}, {"mge", 1}}});
  mge_session_options options = {};
  options.struct_size = sizeof(options);
  options.device = "virtual0";
  mge_status* status = LoadBytes(runtime_, model, &options, &sessions_[0]);
  ASSERT_EQ(status, nullptr) << mge_status_text(status);
  EXPECT_EQ(Run(sessions_[0], 1, 2), "1.000000 2.000000");
  EXPECT_EQ(Run(sessions_[0], 1, 2), "2.000000 4.000000");
  EXPECT_EQ(Run(sessions_[0], -1, 1), "1.000000 5.000000");
}

}  // namespace
}  // namespace mge
