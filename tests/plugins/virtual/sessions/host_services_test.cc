// SPDX-License-Identifier: Apache-2.0
// Services of the host, used by virtual devices through sessions: the cache of blobs, and opening a lost device again.
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kGraph = "input x : float32[4]\ny = Relu(x)\noutput y\n";

absl::StatusOr<std::vector<float>> RunGraph(Session& session) { return ResultsOf(session, {Numbers({4})}); }

bool Holds(const SharedList<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// The messages of a runtime.
struct Messages {
  std::mutex mutex;
  std::vector<std::string> lines;
  static void Write(void* self, LogLevel, std::string_view message) {
    auto& to = *static_cast<Messages*>(self);
    std::lock_guard lock(to.mutex);
    to.lines.emplace_back(message);
  }
};

class CompiledPrograms : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "mge_blobs_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Runs a model on virtual0 in a new runtime. Returns the messages.
  std::vector<std::string> RunOnce(const std::string& bytes = "1MiB") {
    Messages messages;
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    options.sources.call = {{"virtual.devices", "1"},
                            {"plan.host_compute", "0"},
                            {"virtual.compile_time_ms", "1"},
                            {"cache.dir", directory_ + "/c"},
                            {"cache.bytes", bytes},
                            {"log.level", "info"},
                            {"MGE_FASTRUN_CACHE_TYPE", "memory"}};
    options.logger = Logger(LogLevel::kInfo, Messages::Write, &messages);
    auto runtime = Runtime::Create(std::move(options));
    EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
    auto session = Load(*runtime, kGraph, "virtual0");
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    absl::StatusOr<std::vector<float>> y = RunGraph(**session);
    EXPECT_TRUE(y.ok()) << FormatError(y.status());
    session->reset();
    runtime->reset();
    return messages.lines;
  }
  std::string directory_;
};

TEST_F(CompiledPrograms, AreCompiledOnceAndFoundByTheNextRuntime) {
  EXPECT_THAT(RunOnce(), Contains(HasSubstr("its program was compiled and cached")));
  EXPECT_THAT(RunOnce(), Contains(HasSubstr("its program was cached")));
}

TEST_F(CompiledPrograms, AreCompiledAgainAfterDamage) {
  RunOnce();
  for (const auto& file : std::filesystem::directory_iterator(directory_ + "/c")) {
    std::ofstream(file.path(), std::ios::binary | std::ios::in | std::ios::out).seekp(70) << "?";
  }
  EXPECT_THAT(RunOnce(), Contains(HasSubstr("its program was compiled and cached")));
  EXPECT_THAT(RunOnce(), Contains(HasSubstr("its program was cached")));
}

TEST_F(CompiledPrograms, AreCompiledEachTimeIfNothingMayBeKept) {
  for (int i = 0; i < 2; ++i) {
    const std::vector<std::string> lines = RunOnce("0");
    EXPECT_THAT(lines, Contains(HasSubstr("its program was compiled")));
    EXPECT_THAT(lines, Not(Contains(HasSubstr("cached"))));
  }
}

TEST(LostDevice, IsOpenedAgainForALaterSessionIfItsBackendAllows) {
  auto runtime = NewRuntime({{"virtual.devices", "2"},
                             {"virtual.reopen", "1"},
                             {"virtual.fault", "0:kernel@3=lost"},
                             {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  const std::vector<float> expected = *RunGraph(**Load(runtime, kGraph, "cpu0"));
  for (int round = 0; round < 3; ++round) {
    auto session = Load(runtime, kGraph, "virtual0");
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    EXPECT_TRUE(RunGraph(**session).ok());
    EXPECT_TRUE(RunGraph(**session).ok());
    EXPECT_EQ(ErrorId(RunGraph(**session).status()), errors::kDeviceLost.id);
    auto next = Load(runtime, kGraph, "virtual0");
    ASSERT_TRUE(next.ok()) << FormatError(next.status());
    absl::StatusOr<std::vector<float>> y = RunGraph(**next);
    ASSERT_TRUE(y.ok()) << FormatError(y.status());
    EXPECT_EQ(*y, expected);
    EXPECT_EQ(ErrorId(RunGraph(**session).status()), errors::kDeviceLost.id);  // a session keeps its device
    EXPECT_TRUE(RunGraph(**next).ok());
    EXPECT_FALSE(RunGraph(**next).ok());  // the rule of the fault applies to the new device, too
  }
}

TEST(LostDevice, StaysLostIfItsBackendDoesNotAllowMore) {
  auto runtime =
      NewRuntime({{"virtual.devices", "1"}, {"virtual.fault", "kernel@1=lost"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  auto session = Load(runtime, kGraph, "virtual0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  EXPECT_EQ(ErrorId(RunGraph(**session).status()), errors::kDeviceLost.id);
  auto next = Load(runtime, kGraph, "virtual0");
  EXPECT_EQ(ErrorId(next.ok() ? RunGraph(**next).status() : next.status()), errors::kDeviceLost.id);
}

TEST(Rewrites, AreNotAppliedIfABackendForbidsThem) {
  const std::string graph = "input x : float32[4]\nconst c = float32[1]<4>\ny = Div(x, c)\noutput y\n";
  for (const char* devices : {"virtual0", "cpu0,virtual0", "virtual0+cpu0", "cpu0"}) {
    const bool forbidden = std::string_view(devices) != "cpu0";
    auto runtime = NewRuntime({{"virtual.devices", "1"}, {"virtual.forbid_rewrites", "gelu,div_by_constant"}});
    auto session = Load(runtime, graph, devices);
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    auto plan = (*session)->PlanFor(std::vector<InputType>{{.dtype = DType::kF32, .shape = {4}}});
    ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
    const bool applied = Holds((*plan)->report.pass_log, "div_by_constant: 1 changes");
    EXPECT_EQ(applied, !forbidden) << devices;
    EXPECT_EQ(Holds((*plan)->report.pass_log,
                    "div_by_constant: not applied, because backend 'virtual' forbids it for models on virtual0"),
              forbidden)
        << devices;
    absl::StatusOr<std::vector<float>> y = RunGraph(**session);
    ASSERT_TRUE(y.ok()) << devices << FormatError(y.status());
    EXPECT_EQ((*y)[0], Numbers({4}).tensor.Data<float>()[0] / 4) << devices;
  }
}

// The backend `virtual` asks for the rewrite, because its attention reads the parts of a Split in place.
TEST(Rewrites, OfAttentionAreAppliedOnlyIfTheFirstDeviceAsksForThem) {
  const std::string graph =
      "input x : float32[2,3]\nconst wq = float32[3,2]<1>\nconst wk = float32[3,2]<2>\nconst wv = float32[3,2]<3>\n"
      "q = MatMul(x, wq)\nk = MatMul(x, wk)\nv = MatMul(x, wv)\nkt = Transpose(k)\ns = MatMul(q, kt)\n"
      "w = Softmax(s)\ny = MatMul(w, v)\noutput y\n";
  for (const char* devices : {"virtual0", "virtual0+cpu0", "cpu0", "cpu0+virtual0"}) {
    auto session = Load(NewRuntime({{"virtual.devices", "1"}}), graph, devices);
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    auto plan = (*session)->PlanFor(std::vector<InputType>{{.dtype = DType::kF32, .shape = {2, 3}}});
    ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
    EXPECT_EQ(Holds((*plan)->report.pass_log, "attention_projections: 1 changes"),
              std::string_view(devices).starts_with("virtual0"))
        << devices;
  }
}

}  // namespace
}  // namespace mge
