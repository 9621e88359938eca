// SPDX-License-Identifier: Apache-2.0
// Models on a ROCm device: the calls of the driver that a run makes, and the reserve of its memory.
#include <tuple>

#include "tests/plugins/gpu/vendor/failing_calls.h"
#include "tests/plugins/gpu/vendor/native_streams.h"
#include "tests/support/command.h"

namespace mge {
namespace {

constexpr char kDriver[] = MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5";

// Checks the calls of runs that replay: one graph, the copies of one input and one output, and events that exist already.
void ExpectReplays(const std::string& model, const std::vector<HostValue>& inputs) {
  DriverInSoftware driver(kDriver);
  auto session = Session::Load(RuntimeOver("rocm", kDriver), model, {.device = "rocm0"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(ResultsOf(**session, inputs).ok());
  for (int run = 0; run < 5; ++run) {
    const auto calls = driver.CallsOf([&] { EXPECT_TRUE(ResultsOf(**session, inputs).ok()); });
    EXPECT_EQ(calls.at("hipGraphLaunch"), 1u);
    EXPECT_EQ(calls.at("hipMemcpyAsync"), 2u);
    for (const auto& [name, count] : calls) {
      EXPECT_THAT(name, testing::AnyOf("hipGraphLaunch", "hipMemcpyAsync", "hipEventRecord", "hipStreamWaitEvent",
                                       "hipEventQuery", "hipEventSynchronize"));
    }
    EXPECT_LE(calls.count("hipEventSynchronize") ? calls.at("hipEventSynchronize") : 0, 1u);
  }
}

TEST(RocmRuns, ThatAreCapturedLaunchOneGraphAndAllocateNothing) {
  ExpectReplays(MGE_SOURCE_DIR "/packaging/digits/digits.onnx", DigitsInput());
}

TEST(RocmRuns, AreOrderedWithAStreamOfTheApplication) {
  DriverInSoftware driver(kDriver);
  const auto runtime = RuntimeOver("rocm", kDriver);
  auto host = LoadDigits(runtime, "host");
  ASSERT_TRUE(host.ok()) << FormatError(host.status());
  ExpectOrderWithAStream(driver, runtime, "rocm0",
                         {"hipDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRelease", "hipCtxPushCurrent", "hipCtxPopCurrent",
                          "hipStreamCreateWithFlags", "hipStreamDestroy"},
                         *ResultsOf(**host, DigitsInput()));
}

class RocmZoo : public Command {};

TEST_F(RocmZoo, ReplaysMobileNetV2AsOneGraph) {
  ASSERT_EQ(Mge("zoo mobilenetv2 -o model.onnx").code, 0);
  ExpectReplays(Path("model.onnx"), {Numbers({1, 3, 224, 224})});
}

// The variable of MegEngine: the pool has all of that memory before the first run, in pieces that later plans use, too.
// Without the variable, it grows with the plans.
TEST(RocmRuns, HaveTheMemoryThatIsReservedBeforeTheFirstOne) {
  constexpr uint64_t kBytes = 8 << 20, kPlanning = 64 << 10;  // what planning itself took and gave back is a part of it
  for (const char* value : {"b:8388608", "0"}) {
    DriverInSoftware driver(kDriver, 1, 4 * kBytes);
    const auto runtime = RuntimeOver("rocm", kDriver, {}, {{"MGB_ROCM_RESERVE_MEMORY", value}});
    auto session = LoadDigits(runtime, "rocm0");
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    Device& device = *runtime->devices().Resolve("rocm0", "the test")->devices.front().device;
    const InputType input = TypeOfValue(DigitsInput()[0]);
    ASSERT_TRUE((*session)->PlanFor(std::span(&input, 1)).ok());
    const auto planned = device.Stats().pool;
    for (int64_t images : {3, 3, 500, 7}) ASSERT_TRUE(ResultsOf(**session, DigitsInput(images)).ok());
    if (value != std::string_view("0")) {
      EXPECT_GE(planned.committed, kBytes - kPlanning);
      EXPECT_LE(planned.committed, kBytes);
      EXPECT_EQ(device.Stats().pool.slab_acquires, planned.slab_acquires);
    } else {
      EXPECT_LT(planned.committed, kBytes);
      EXPECT_GT(device.Stats().pool.slab_acquires, planned.slab_acquires);
    }
  }
}

TEST(RocmRuns, UpdateTheGraphIfTheMemoryOfOutputsMoves) {
  DriverInSoftware driver(kDriver);
  RunWithMovingOutputs(RuntimeOver("rocm", kDriver), "rocm0");
  EXPECT_EQ(driver.Calls("hipGraphInstantiateWithFlags"), 4u);
  EXPECT_GE(driver.Calls("hipGraphExecUpdate"), 3u);
  EXPECT_GE(driver.Calls("hipGraphLaunch"), 7u);
}

// tests/plugins/cuda fails all functions of its driver. The host code is the same.
TEST(RocmRuns, OfTwoDevicesWithAFailingCallAreErrorsAndNothingLeaks) {
  const auto use = [] { return UseTwoDevices("rocm", kDriver); };
  std::vector<DriverCall> calls;
  {
    DriverInSoftware driver(kDriver, 2);
    const absl::Status status = use();
    ASSERT_TRUE(status.ok()) << FormatError(status);
    for (const char* function : {"hipGraphExecUpdate", "hipEventElapsedTime", "hipDeviceCanAccessPeer",
                                 "hipDeviceGetP2PAttribute", "hipMemcpyPeerAsync", "hipModuleLaunchKernel"}) {
      const uint64_t count = driver.Calls(function);
      EXPECT_GT(count, 0u) << function;
      calls.emplace_back(function, std::min<uint64_t>(count, 3));
    }
  }
  constexpr int kLaunchFailed = 719;
  auto failures = FailEachCall(kDriver, 2, "rocm", calls, kLaunchFailed, use);
  EXPECT_GT(failures["hipGraphExecUpdate"], 0);
  EXPECT_GT(failures["hipMemcpyPeerAsync"], 0);
}

class RocmVersions : public Command {};

TEST_F(RocmVersions, OfRcclThatAreTooOldAreNamedWithTheNeededOneAndTheFix) {
  const std::string library = MGE_BINARY_DIR "/tests/rocm/librccl_old.so";
  const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_rocm.so --only collective",
                        std::string("MGE_ROCM_DRIVER=") + kDriver + " MGE_ROCM_RCCL=" + library);
  EXPECT_THAT(o.out + o.err, testing::HasSubstr("RCCL cannot be used: " + library +
                                                " has version 2.13, and this backend needs 2.14 or a later 2.x; install "
                                                "rccl, or set rocm.rccl to its path"));
}

// Other libraries of AMD that are too old lack functions. Their versions say less: hiprtc of HIP 5 returns 9.0.
TEST_F(RocmVersions, OfLibrariesThatLackAFunctionAreErrorsWithTheFunctionAndTheFix) {
  for (const char* name : {"bert-tiny", "mobilenetv2", "eltwise-chain"}) {
    ASSERT_EQ(Mge(std::string("zoo ") + name + " -o " + name + ".onnx").code, 0);
  }
  for (const auto& [variable, model, message] :
       {std::tuple("ROCBLAS", "bert-tiny",
                   " has no function rocblas_create_handle; install rocblas, or set rocm.rocblas to its path, or to off"),
        {"MIOPEN", "mobilenetv2",
         " has no function miopenCreate; install miopen-hip, or set rocm.miopen to its path, or to off"},
        {"HIPRTC", "eltwise-chain",
         " has no function hiprtcVersion; install the HIP runtime with hiprtc, or set rocm.hiprtc to its path, or to "
         "off"}}) {
    const Outcome o = Mge(std::string("plan ") + model + ".onnx --device rocm0 --why",
                          std::string("MGE_ROCM_DRIVER=") + kDriver + " MGE_ROCM_" + variable + "=" + kDriver);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, testing::HasSubstr(kDriver + std::string(message)));
  }
}

}  // namespace
}  // namespace mge
