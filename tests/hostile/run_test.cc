// SPDX-License-Identifier: Apache-2.0
// Backends that fail while a model runs, while sessions are alive, and when the process ends.
#include <gmock/gmock.h>

#include <thread>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "tests/hostile/hostile.h"
#include "tests/support/onnx_builder.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace ob = onnx_builder;

// Returns the model x -> Relu -> y, whose node is named "middle". With `with_constant`, the node is a PRelu with constant
// slopes.
std::string Model(bool with_constant = false) {
  std::string node = with_constant ? ob::NodeProto("PRelu", {"x", "slope"}, {"y"}) : ob::NodeProto("Relu", {"x"}, {"y"});
  node += ob::TextField(ob::field::node::kName, "middle");
  return ob::ModelProto({.graph = ob::GraphProto({.nodes = {node},
                                                  .inputs = {ob::ValueInfo("x", DType::kF32, {int64_t{4}})},
                                                  .outputs = {ob::TextField(ob::field::value_info::kName, "y")},
                                                  .initializers = {ob::FloatTensor("slope", {1}, {0})}})});
}

std::shared_ptr<Runtime> NewRuntime(const std::string& folder, std::vector<Assignment> settings = {}) {
  RuntimeOptions options;
  options.plugin_directories = {folder, MGE_BINARY_DIR "/lib/mge/plugins"};
  options.built_in_plugins = false;
  options.sources.call = std::move(settings);
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  return *runtime;
}

absl::StatusOr<std::shared_ptr<Session>> NewSession(std::shared_ptr<Runtime> runtime, const std::string& device,
                                                    const std::string& model = Model()) {
  PluginFolder folder;
  std::string path = folder.Write("m.onnx", model);
  return Session::Load(std::move(runtime), path, {.device = device});
}

absl::Status RunOnce(Session& session, std::vector<float>* got = nullptr, RunState* control = nullptr) {
  HostValue x;
  x.tensor = *Tensor::Create(DType::kF32, {4});
  auto data = x.tensor.MutableData<float>();
  for (size_t i = 0; i < 4; ++i) data[i] = i % 2 ? 1.0f : -1.0f;
  std::vector<HostValue> in = {x}, out(1);
  RunState own;
  absl::Status status = session.Run(in, out, control ? *control : own);
  if (status.ok() && got) {
    auto y = out[0].tensor.Data<float>();
    got->assign(y.begin(), y.end());
  }
  return status;
}

TEST(HostileRun, AKernelThatFailsIsNamedWithItsDeviceAndNodeAndOtherDevicesGoOn) {
  HostileFolder folder;
  folder.AddHostile("kernel_error");
  auto runtime = NewRuntime(folder.path());
  auto session = NewSession(runtime, "hostile0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (int i = 0; i < 2; ++i) {  // the same session can run again
    absl::Status status = RunOnce(**session);
    EXPECT_EQ(ErrorId(status), errors::kKernelFailed.id);
    EXPECT_THAT(FormatError(status), AllOf(HasSubstr("the hostile backend gives up"),
                                           HasSubstr("where: device hostile0, kernel hostile.relu, node 'middle' (Relu)")));
  }
  auto other = NewSession(runtime, "cpu0");
  std::vector<float> y;
  ASSERT_TRUE(RunOnce(**other, &y).ok());
  EXPECT_EQ(y, (std::vector<float>{0, 1, 0, 1}));
}

TEST(HostileRun, AKernelThatWritesBesideItsBufferIsNamedWhenMemoryIsChecked) {
  for (auto [name, what] : {std::pair("kernel_overrun", "1 of the 112 bytes behind the buffer 'y' (16 bytes)"),
                            std::pair("kernel_underrun", "1 of the 64 bytes in front of the buffer 'y' (16 bytes)")}) {
    HostileFolder own;
    own.AddHostile(name);
    auto session = NewSession(NewRuntime(own.path(), {{"debug.check_memory", "1"}}), "hostile0");
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    for (int i = 0; i < 2; ++i) {
      absl::Status status = RunOnce(**session);
      EXPECT_EQ(ErrorId(status), errors::kKernelFailed.id) << name;
      EXPECT_THAT(FormatError(status), AllOf(HasSubstr("kernel hostile.relu of device hostile0 wrote outside of its memory"),
                                             HasSubstr(what), HasSubstr("node 'middle' (Relu)")));
    }
  }
  HostileFolder none;
  auto session = NewSession(NewRuntime(none.path(), {{"debug.check_memory", "1"}}), "cpu0");
  std::vector<float> y;
  ASSERT_TRUE(RunOnce(**session, &y).ok());
  EXPECT_EQ(y, (std::vector<float>{0, 1, 0, 1}));
}

TEST(HostileRun, AKernelThatChangesAWatchedValueIsNamed) {
  for (const char* fault : {"kernel_writes_input", "none"}) {
    HostileFolder folder;
    folder.AddHostile(fault);
    auto first = NewSession(NewRuntime(folder.path()), "hostile0");
    ASSERT_TRUE(first.ok()) << FormatError(first.status());
    ASSERT_TRUE(RunOnce(**first).ok());
    const SharedList<Unit> units = (*first)->last_plan()->units;  // as `mge plan` shows them
    ASSERT_EQ(units[0].input_ids.size(), 1u);
    const std::string x = std::to_string(units[0].input_ids[0]), y = std::to_string(units[0].output_ids[0]);
    auto watching = NewSession(NewRuntime(folder.path(), {{"MGB_DEBUG_VAR_SANITY_CHECK_LOG", x}}), "hostile0");
    for (int i = 0; i < 2; ++i) {
      absl::Status status = RunOnce(**watching);
      if (fault == std::string("none")) {
        EXPECT_TRUE(status.ok()) << FormatError(status);
        continue;
      }
      EXPECT_EQ(ErrorId(status), errors::kKernelFailed.id);
      EXPECT_THAT(FormatError(status),
                  AllOf(HasSubstr("a step changed the bytes of value 'x' (id " + x + ", float32[4], 16 bytes)"),
                        HasSubstr("1 of its bytes differ, the first at offset 5"),
                        HasSubstr("device hostile0, kernel hostile.relu, node 'middle' (Relu)")));
    }
    auto other = NewSession(NewRuntime(folder.path(), {{"debug.watch_value", y}}), "hostile0");
    EXPECT_TRUE(RunOnce(**other).ok());
  }
}

TEST(HostileRun, HostMemoryThatABackendAllocatesIsLoggedOnRequest) {
  HostileFolder folder;
  folder.AddHostile("kernel_allocates");
  PluginFolder models;
  const std::string run = "run " + models.Write("m.onnx", Model()) + " --device hostile0";
  const Outcome logged = folder.Mge(run, "MGB_LOG_TRT_MEM_ALLOC=1"), quiet = folder.Mge(run, "MGB_LOG_TRT_MEM_ALLOC=0");
  EXPECT_EQ(logged.code, 0) << logged.err;
  EXPECT_THAT(logged.err, HasSubstr("allocates 96 bytes of host memory, alignment 128, at 0x"));
  EXPECT_THAT(quiet.err, Not(HasSubstr("of host memory")));
}

TEST(HostileRun, ALostDeviceStaysLostWhileOthersWork) {
  HostileFolder folder;
  folder.AddHostile("kernel_lost");
  auto runtime = NewRuntime(folder.path());
  auto session = NewSession(runtime, "hostile0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (int i = 0; i < 3; ++i) {
    absl::Status status = RunOnce(**session);
    EXPECT_EQ(ErrorId(status), errors::kDeviceLost.id) << FormatError(status);
    EXPECT_THAT(FormatError(status), AllOf(HasSubstr("fell off the bus"), HasSubstr("restart the process")));
  }
  auto other = NewSession(runtime, "cpu0");
  EXPECT_TRUE(RunOnce(**other).ok());
}

TEST(HostileRun, AKernelThatWaitsEndsWhenTheRunIsCancelled) {
  HostileFolder folder;
  folder.AddHostile("kernel_waits");
  auto runtime = NewRuntime(folder.path());
  auto session = NewSession(runtime, "hostile0");
  RunState control;
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    control.cancel = 1;
  });
  absl::Status status = RunOnce(**session, nullptr, &control);
  user.join();
  EXPECT_EQ(ErrorId(status), errors::kCancelled.id) << FormatError(status);
}

TEST(HostileRun, AKernelThatWaitsEndsAtTheTimeLimitAndTheControlIsReusable) {
  HostileFolder folder;
  folder.AddHostile("kernel_waits");
  auto runtime = NewRuntime(folder.path());
  auto waiting = NewSession(runtime, "hostile0"), good = NewSession(runtime, "cpu0");
  RunState control;
  for (int i = 0; i < 2; ++i) {
    control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    EXPECT_EQ(ErrorId(RunOnce(**waiting, nullptr, &control)), errors::kTimeout.id);
    control.deadline.reset();
    EXPECT_TRUE(RunOnce(**good, nullptr, &control).ok());
  }
}

TEST(HostileRun, TheCommandEndsAtItsTimeLimitIfAKernelHangs) {
  HostileFolder folder;
  folder.AddHostile("kernel_endless");
  PluginFolder models;
  std::string model = models.Write("m.onnx", Model());
  Outcome o = folder.Mge(fmt::format("run {} --device hostile0 --timeout 0.1", model));
  EXPECT_EQ(o.code, 124) << o.err;
  EXPECT_THAT(o.err, AllOf(HasSubstr("E12401"), HasSubstr("ignores its stop flag"),
                           HasSubstr("device hostile0, kernel hostile.relu, node 'middle' (Relu)")));
}

// The command does not wait for work on a queue after its time limit, so it ends by itself.
TEST(HostileRun, TheCommandEndsAtItsTimeLimitIfADeviceHangs) {
  HostileFolder folder;
  if (!std::filesystem::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "no virtual backend";
  struct {
    const char *fault, *settings, *place;
  } cases[] = {{"copy@1=hang", "", "device virtual0"},
               {"kernel@1=hang", "", "device virtual0, uploading constants"},
               {"kernel@3=hang", "", "device virtual0, between node 'conv1' (Conv)"},
               {"kernel@3=hang", "", "(MGE_DEBUG_CHECK_MEMORY=1 names the exact node)"},
               {"kernel@3=hang", "--set debug.check_memory=1", "kernel gpu."},
               {"copy@3=hang", "--set select.strategy=profile", "timing the kernels of"},
               {"kernel@2=hang", "--set select.strategy=profile --set virtual.wrong_kernel=1", "timing the kernels of"}};
  for (const auto& c : cases) {
    Outcome o = folder.Mge(fmt::format("run " MGE_SOURCE_DIR "/packaging/digits/digits.onnx --device virtual0 --timeout 0.2"
                                       " --set virtual.devices=1 {}",
                                       c.settings),
                           fmt::format("MGE_VIRTUAL_FAULT={}", c.fault));
    EXPECT_EQ(o.code, 124) << c.fault << "\n" << o.err;
    EXPECT_THAT(o.err, AllOf(HasSubstr("E12401"), HasSubstr(c.place), Not(HasSubstr("so the process ends")))) << c.fault;
  }
}

TEST(HostileRun, ResultsArePrintedEvenIfABackendCrashesWhenItStops) {
  HostileFolder folder;
  folder.AddHostile("stop_abort");
  Outcome o = folder.Mge("devices");
  EXPECT_GT(o.code, 128);
  EXPECT_THAT(o.out, HasSubstr("a hostile device"));
}

// A request of a kernel, when it is prepared or bound, that the host must refuse.
struct Request {
  const char *backend, *says;
};
class HostileRequests : public testing::TestWithParam<Request> {};

TEST_P(HostileRequests, AreAnErrorThatNamesTheKernelAndTheRequest) {
  HostileFolder folder;
  folder.AddHostile(GetParam().backend);
  auto session = NewSession(NewRuntime(folder.path()), "hostile0", Model(true));
  absl::Status status = session.ok() ? RunOnce(**session) : session.status();
  EXPECT_EQ(ErrorId(status), errors::kKernelFailed.id) << FormatError(status);
  EXPECT_THAT(FormatError(status), AllOf(HasSubstr("kernel hostile.relu of device hostile0"), HasSubstr(GetParam().says),
                                         HasSubstr("node 'middle' (PRelu)"),
                                         HasSubstr(fmt::format("the author of backend {}", GetParam().backend))));
}

TEST_P(HostileRequests, ExcludeTheKernelIfKernelsAreTimed) {
  HostileFolder folder;
  folder.AddHostile(GetParam().backend);
  auto runtime = NewRuntime(folder.path(), {{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  auto session = NewSession(runtime, "hostile0", Model(true));
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  InputType x = {.dtype = DType::kF32, .shape = {4}};
  auto plan = (*session)->PlanFor(std::span(&x, 1));
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_EQ((*plan)->units[0].kernel, "hostile.second");
  EXPECT_THAT(PlanText(**plan, true), AllOf(HasSubstr("not hostile.relu"), HasSubstr(GetParam().says)));
  std::vector<float> y;
  ASSERT_TRUE(RunOnce(**session, &y).ok());
  EXPECT_EQ(y, (std::vector<float>{0, 1, 0, 1}));
}
INSTANTIATE_TEST_SUITE_P(
    Hostile, HostileRequests,
    testing::Values(Request{"prepare_nothing", "prepare returned MGE_OK, but no kernel"},
                    Request{"prepare_state", "has state, but slot 'state_create' of table 'kernel' is NULL"},
                    Request{"prepare_packed", "64 bytes for the packed form of input 1, but slot 'prepack' of table"},
                    Request{"prepare_pack_wild", "18446744073709551615 bytes for the packed form of input 1; the limit is"},
                    Request{"prepare_args", "4294967295 bytes of arguments; the limit is 16777216"},
                    Request{"prepare_workspace", "1 bytes of workspace, but promised 0 at most"},
                    Request{"prepare_workspace_wild", "9223372036854775808 bytes of workspace; the limit is 1099511627776"},
                    Request{"prepare_unbound", "bind returned MGE_OK, but no function"}),
    [](const auto& info) { return std::string(info.param.backend); });

struct ClaimCase {
  const char *backend, *says;
};
class HostileClaims : public testing::TestWithParam<ClaimCase> {};

TEST_P(HostileClaims, AreDroppedWithAReason) {
  HostileFolder folder;
  folder.AddHostile(GetParam().backend);
  PluginFolder models;
  Outcome o = folder.Mge(fmt::format("plan {} --device hostile0 --why", models.Write("m.onnx", Model())));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr(fmt::format("dropped fusion {}.{}\n", GetParam().backend, GetParam().says)));
  EXPECT_LT(o.out.size(), 10'000u);
}
INSTANTIATE_TEST_SUITE_P(
    Hostile, HostileClaims,
    testing::Values(ClaimCase{"claim_null", "?: a claim is described by a struct that is NULL or too short"},
                    ClaimCase{"claim_short", "?: a claim is described by a struct that is NULL or too short"},
                    ClaimCase{"claim_empty", "group: names no nodes"},
                    ClaimCase{"claim_wild", "group: names 18446744073709551615 nodes; the graph has 1"},
                    ClaimCase{"claim_loss", "group: states a benefit of -5 us; it must be finite and not negative"},
                    ClaimCase{"claim_endless", "group: states a benefit of inf us; it must be finite and not negative"},
                    ClaimCase{
                        "claim_many",
                        "?: 936 more claims than a device may offer; the limits per node are 64 claims and 1024 nodes"}),
    [](const auto& info) { return std::string(info.param.backend); });

TEST(HostileRun, TooManyRefusalsAreCountedAndNotStored) {
  HostileFolder folder;
  folder.AddHostile("enqueue_refusals");
  PluginFolder models;
  Outcome o = folder.Mge(fmt::format("plan {} --device hostile0 --why", models.Write("m.onnx", Model())));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("not hostile.other: not today"),
                           HasSubstr("not 744 others: only 256 refusals per problem are kept")));
}

class HostileCandidates : public testing::TestWithParam<const char*> {};

TEST_P(HostileCandidates, AreDroppedAndTheGoodOneRuns) {
  HostileFolder folder;
  folder.AddHostile(GetParam());
  auto session = NewSession(NewRuntime(folder.path()), "hostile0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  std::vector<float> y;
  absl::Status status = RunOnce(**session, &y);
  ASSERT_TRUE(status.ok()) << FormatError(status);
  EXPECT_EQ(y, (std::vector<float>{0, 1, 0, 1}));
}
INSTANTIATE_TEST_SUITE_P(Hostile, HostileCandidates,
                         testing::Values("enqueue_counts", "enqueue_short", "enqueue_null", "enqueue_layout"),
                         [](const auto& info) { return std::string(info.param); });

TEST(HostileRun, ACandidateWithUnknownFlagsIsRefusedNotRun) {
  HostileFolder folder;
  folder.AddHostile("enqueue_flags");
  auto session = *NewSession(NewRuntime(folder.path()), "hostile0");
  InputType x = {.dtype = DType::kF32, .shape = {4}};
  auto plan = session->PlanFor(std::span(&x, 1));
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  ASSERT_EQ((*plan)->units.size(), 1u);
  EXPECT_NE((*plan)->units[0].kernel, "hostile.relu");
  EXPECT_EQ((*plan)->report.reference_steps, 1);
  EXPECT_THAT(PlanText(**plan, true), HasSubstr("has attribute bits that this host does not know"));
}

TEST(HostileRun, AnEnumerationThatThrowsIsAnError) {
  HostileFolder folder;
  folder.AddHostile("enqueue_throw");
  auto session = NewSession(NewRuntime(folder.path()), "hostile0");
  absl::Status status = session.ok() ? RunOnce(**session) : session.status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(FormatError(status), HasSubstr("thrown by the hostile backend"));
}

TEST(HostileRun, ADeviceThatDoesNotOpenIsAnErrorAndOthersWork) {
  for (const char* name : {"open_throw", "open_error", "open_null"}) {
    HostileFolder folder;
    folder.AddHostile(name);
    auto runtime = NewRuntime(folder.path());
    auto session = NewSession(runtime, "hostile0");
    EXPECT_EQ(ErrorId(session.status()), errors::kDeviceUnusable.id) << name;
    EXPECT_TRUE(RunOnce(**NewSession(runtime, "cpu0")).ok());
  }
}

TEST(HostileLife, ABackendStaysLoadedUntilItsLastSessionIsReleased) {
  HostileFolder folder;
  folder.AddHostile("quiet");
  auto runtime = NewRuntime(folder.path());
  auto session = *NewSession(runtime, "hostile0");
  std::weak_ptr<Runtime> gone = runtime;
  runtime.reset();
  EXPECT_FALSE(gone.expired());  // the session owns it
  std::vector<float> y;
  EXPECT_TRUE(RunOnce(*session, &y).ok());
  session.reset();
  EXPECT_TRUE(gone.expired());
}

// Each case ends a child process.
TEST(HostileLifeDeathTest, StaticObjectsMayCallTheHostDuringExit) {
  HostileFolder folder;
  folder.AddHostile("unload_host");
  EXPECT_EXIT(
      {
        (void)RunOnce(**NewSession(NewRuntime(folder.path()), "hostile0"));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(HostileLifeDeathTest, ExitInOneThreadWhileAnotherRunsIsClean) {
  HostileFolder folder;
  folder.AddHostile("quiet");
  EXPECT_EXIT(
      {
        auto session = *NewSession(NewRuntime(folder.path()), "hostile0");
        std::thread busy([session] {
          for (;;) (void)RunOnce(*session);
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::thread leaves([] { std::exit(0); });
        leaves.join();
        busy.join();
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace mge
