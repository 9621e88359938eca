// SPDX-License-Identifier: Apache-2.0
// Memory that the plans of a runtime share (memory.static_policy, GE_USE_STATIC_MEMORY).
#include "core/engine/run_fence.h"
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// Returns a model of `rows` x 1024 numbers whose arena has two buffers at a time: 8 KiB per row.
std::string ModelOf(const std::string& rows) {
  return "input x : float32[" + rows +
         ",1024]\na = Relu(x)\nb = Softmax(a)\nc = Sub(a, b)\nd = Softmax(c)\ny = ReduceSum(d) {keepdims=1}\noutput y\n";
}

std::string ModelOf(int64_t rows) { return ModelOf(std::to_string(rows)); }

struct Model {
  std::shared_ptr<Session> session;
  std::vector<HostValue> in;
};

class StaticMemoryTest : public testing::TestWithParam<std::string> {
 protected:
  void Start(std::vector<Assignment> settings, std::vector<std::pair<std::string, std::string>> variables = {}) {
    settings.insert(settings.end(), {{"virtual.devices", "1"}, {"threads", "1"}, {"memory.pool", "unpooled"}});
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    options.sources.call = std::move(settings);
    options.sources.environment.variables = std::move(variables);
    auto runtime = Runtime::Create(std::move(options));
    ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
    runtime_ = *runtime;
  }
  Model Make(int64_t rows, int seed = 1) {
    auto session = Load(runtime_, ModelOf(rows), GetParam());
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return {*session, {Numbers({rows, 1024}, seed)}};
  }
  static int64_t ArenaOf(const Model& model) {
    int64_t bytes = 0;
    for (const Arena& a : model.session->last_plan()->arenas) bytes += a.memory_class == MGE_MEMORY_DEVICE ? a.bytes : 0;
    return bytes;
  }
  static std::vector<float> Run(const Model& model) {
    auto result = ResultsOf(*model.session, model.in);
    EXPECT_TRUE(result.ok()) << FormatError(result.status());
    return result.ok() ? *result : std::vector<float>();
  }
  Device& device() { return *runtime_->devices().Resolve(GetParam(), "test")->devices.front().device; }
  std::vector<float> Expected(const Model& model, int64_t rows) {
    auto host = Load(runtime_, ModelOf(rows), "host");
    return *ResultsOf(**host, model.in);
  }

  std::shared_ptr<Runtime> runtime_;
};

// The runs of two models need the memory of both without sharing, and that of the larger one with it.
TEST_P(StaticMemoryTest, OfTwoModelsIsThatOfTheLargerOne) {
  uint64_t peak[2] = {};
  int64_t small = 0, large = 0;
  for (const char* mode : {"0", "2"}) {
    Start({}, {{"GE_USE_STATIC_MEMORY", mode}});
    const Model a = Make(128), b = Make(384);
    const std::vector<float> first = Run(a), second = Run(b);
    for (int round = 0; round < 3; ++round) {  // captures, replays; the arena moved after the first run of a
      EXPECT_EQ(Run(a), first) << mode;
      EXPECT_EQ(Run(b), second) << mode;
    }
    const std::vector<float> expected = Expected(a, 128);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(first[i], expected[i], 1e-2);
    small = ArenaOf(a);
    large = ArenaOf(b);
    EXPECT_GE(small, kMiB);
    EXPECT_GE(large, 2 * small);
    peak[*mode == '2'] = device().Stats().peak_charged;
  }
  EXPECT_EQ(peak[0] - peak[1], static_cast<uint64_t>(small)) << "arenas " << small << " and " << large;
}

TEST_P(StaticMemoryTest, IsReleasedWithTheLastModelThatUsesIt) {
  Start({{"memory.static_policy", "static"}});
  Model a = Make(128), b = Make(384);
  Run(a), Run(b);
  const uint64_t both = device().budget().in_use();
  b = {};
  EXPECT_LE(device().budget().in_use(), both);
  Run(a);
  a = {};
  EXPECT_EQ(device().Stats().pool.in_use, 0u);
}

TEST_P(StaticMemoryTest, IsGivenBackIfAnotherRequestNeedsIt) {
  Start({{"memory.static_policy", "1"}, {"memory.limit", GetParam() + "=8MiB"}});
  const Model a = Make(384);
  Run(a);
  auto pool = device().PoolOf();
  ASSERT_TRUE(pool.ok());
  auto all = (*pool)->Acquire(7 * kMiB);
  ASSERT_TRUE(all.ok()) << FormatError(all.status());
  const absl::Status refused = ResultsOf(*a.session, a.in).status();
  EXPECT_EQ(ErrorId(refused), errors::kOverBudget.id) << FormatError(refused);
  (*pool)->Release(*all);
  Run(a);
}

TEST_P(StaticMemoryTest, OfModelsWithVariableShapesIsTheirOwn) {
  Start({{"memory.static_policy", "static"}});
  auto session = Load(runtime_, ModelOf("N"), GetParam());
  ASSERT_TRUE(session.ok());
  Run({*session, {Numbers({128, 1024})}});
  EXPECT_TRUE(InstanceStore::Of(*(*session)->last_plan()).arenas().shared.empty());
  EXPECT_GT(InstanceStore::Of(*(*session)->last_plan()).IdleBytes(), 0);
}

TEST_P(StaticMemoryTest, IsUsedWithRedZones) {
  Start({{"memory.static_policy", "static"}, {"debug.check_memory", "1"}});
  const Model a = Make(16), b = Make(32);
  for (int round = 0; round < 2; ++round) Run(a), Run(b);
}

INSTANTIATE_TEST_SUITE_P(Devices, StaticMemoryTest, testing::Values("virtual0", "cpu0"),
                         [](const auto& info) { return info.param; });

class SharedArenaOfGpu : public StaticMemoryTest {};

TEST_P(SharedArenaOfGpu, RefusesARunWhileAnotherIsInProgress) {
  Start({{"memory.static_policy", "static"}});
  const Model a = Make(384), b = Make(128);
  Run(a), Run(b);
  RunState control;
  std::vector<HostValue> out(1);
  auto fence = a.session->Submit({.inputs = a.in, .outputs = out, .wait = false}, control);
  ASSERT_TRUE(fence.ok()) << FormatError(fence.status());
  const absl::Status refused = ResultsOf(*b.session, b.in).status();
  EXPECT_EQ(ErrorId(refused), errors::kApiMisuse.id);
  EXPECT_THAT(FormatError(refused), AllOf(HasSubstr("another run uses the shared arena of device virtual0"),
                                          HasSubstr("memory.static_policy=off")));
  EXPECT_TRUE((*fence)->Wait(std::chrono::seconds(10)).ok());
  Run(b);
  EXPECT_TRUE(
      (*a.session->Submit({.inputs = a.in, .outputs = out, .wait = false}, control))->Wait(std::chrono::seconds(10)).ok());
}

// A session chooses for itself; a variable with another value is an error.
TEST_P(SharedArenaOfGpu, IsAnOptionOfASession) {
  Start({}, {});
  auto session = [&](const char* name, const char* value) {
    return Session::Create(runtime_, {*ParseGraphText(ModelOf(128)), {}},
                           {.device = "virtual0", .settings = {{name, value}}});
  };
  auto shared = session("static_memory_policy", "2"), own = session("ge.exec.staticMemoryPolicy", "0");
  ASSERT_TRUE(shared.ok() && own.ok()) << FormatError(shared.status());
  Run({*shared, {Numbers({128, 1024})}});
  Run({*own, {Numbers({128, 1024})}});
  EXPECT_EQ(InstanceStore::Of(*(*shared)->last_plan()).arenas().shared.size(), 1u);
  EXPECT_TRUE(InstanceStore::Of(*(*own)->last_plan()).arenas().shared.empty());

  Start({}, {{"GE_USE_STATIC_MEMORY", "2"}});
  EXPECT_TRUE(session("static_memory_policy", "1").ok());
  const absl::Status differs = session("ge.exec.staticMemoryPolicy", "0").status();
  EXPECT_EQ(ErrorId(differs), errors::kBadSetting.id);
  EXPECT_THAT(FormatError(differs),
              AllOf(HasSubstr("GE_USE_STATIC_MEMORY is 2"), HasSubstr("ge.exec.staticMemoryPolicy is 0")));
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedArenaOfGpu, testing::Values("virtual0"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mge
