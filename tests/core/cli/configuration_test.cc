// SPDX-License-Identifier: Apache-2.0
// Devices, variables and configuration files of the mge command, as a user sets them.
#include <regex>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;
namespace ob = onnx_builder;

// The free memory of the machine changes while a test runs.
std::string WithoutSizes(const std::string& text) { return std::regex_replace(text, std::regex("[0-9.]+ [KMG]iB"), "SIZE"); }

TEST_F(Command, DevicesAndEnvPrintTheirListAndThenTheErrorOfAMisspeltDefaultDevice) {
  Good();
  const std::string variable = "MGE_DEFAULT_DEVICE=zzz";
  Outcome run = Mge("run good.onnx", variable);
  EXPECT_EQ(run.code, 5);
  for (const char* command : {"devices", "env"}) {
    Outcome o = Mge(command, variable);
    const std::string list = Mge(command, command == std::string("env") ? variable : "").out;
    EXPECT_EQ(WithoutSizes(o.out), WithoutSizes(list)) << command;
    EXPECT_THAT(o.out, HasSubstr(command == std::string("env") ? "engine.type" : "cpu0")) << command;
    EXPECT_EQ(o.code, run.code) << command;
    EXPECT_THAT(o.err, HasSubstr(run.err.substr(0, run.err.find('\n')))) << command;
  }
  Outcome o = Mge("devices --json", variable);
  EXPECT_EQ(o.code, run.code);
  EXPECT_EQ(json::parse(o.out)["default_device"]["error"]["exit_code"], run.code);
}

TEST_F(Command, EveryCommandRefusesADefaultDeviceThatIsNoName) {
  for (const char* command : {"devices", "env", "plugins"}) {
    Outcome o = Mge(command, "MGE_DEFAULT_DEVICE=cuda:0");
    EXPECT_EQ(o.code, 5) << command;
    EXPECT_THAT(o.err, HasSubstr("error[E0501]")) << command;
    for (const char* part : {"MGE_DEFAULT_DEVICE", "cuda0"}) EXPECT_THAT(o.err, HasSubstr(part)) << command;
  }
}

TEST_F(Command, DevicesAndEnvOnlyWarnOfADefaultDeviceThatIsAbsent) {
  for (const char* name : {"gpu0", "cpu7", "rocm0"}) {
    for (const char* command : {"devices", "env"}) {
      Outcome o = Mge(command, std::string("MGE_DEFAULT_DEVICE=") + name);
      EXPECT_EQ(o.code, 0) << command << " " << name;
      EXPECT_THAT(o.err, HasSubstr(std::string("warning: device '") + name + "' cannot be used")) << command;
    }
  }
  EXPECT_THAT(Mge("devices", "MGE_DEFAULT_DEVICE=gpu0,cpu0").err, IsEmpty());
}

TEST_F(Command, FailsWithoutFallbackIfTheDeviceIsMissing) {
  Good();
  Outcome o = Mge("run good.onnx", "MGE_DEFAULT_DEVICE=gpu0");
  EXPECT_EQ(o.code, 5);
  EXPECT_THAT(o.err, HasSubstr("error[E0502] device 'gpu0'"));
  for (const char* part : {"what:", "where:", "fix:", "MGE_DEFAULT_DEVICE"}) EXPECT_THAT(o.err, HasSubstr(part));
  EXPECT_THAT(o.out, IsEmpty());
  EXPECT_EQ(Mge("run good.onnx", "MGE_DEFAULT_DEVICE=gpu0,cpu0").code, 0);
  EXPECT_EQ(Mge("run good.onnx", "MGE_DEFAULT_DEVICE=").code, 0);
  for (const char* name : {"cpu99", "\"  \"", "cpu:0x", "cqu0"}) {
    EXPECT_EQ(Mge("run good.onnx", std::string("MGE_DEFAULT_DEVICE=") + name).code, 5) << name;
  }
  EXPECT_THAT(Mge("run good.onnx", "MGE_DEFAULT_DEVICE=cuda:0").err, HasSubstr("cuda0"));
}

TEST_F(Command, RefusesEmptyArgumentsInsteadOfIgnoringThem) {
  for (const char* line : {"plugins verify ''", "plugins install ''", "plugins remove ''", "doctor --end-quarantine ''",
                           "env ''", "zoo ''", "help ''", "sdk test ''", "sdk test mge.so --only ''", "sdk new '' folder",
                           "sdk new mydev ''", "check ''", "devices --device ''", "--device '' devices", "--set '' devices",
                           "--config '' devices", "run good.onnx --input ''", "plan good.onnx --skip ''"}) {
    Outcome o = Mge(line);
    EXPECT_EQ(o.code, 2) << line;
    EXPECT_NE(o.err.find("it must not be empty"), std::string::npos) << line << ": " << o.err;
    EXPECT_EQ(o.out, "") << line;
  }
  EXPECT_FALSE(fs::exists(Path("folder")));
}

TEST_F(Command, NamesTheSuccessorOfARemovedOption) {
  Good();
  const std::pair<const char*, const char*> lines[] = {{"run good.onnx --compare host", "--against"},
                                                       {"run good.onnx --compare=host", "--against"},
                                                       {"doctor --release cpu", "--end-quarantine"},
                                                       {"sdk test mge.so --limit 5", "--timeout"}};
  for (const auto& [line, successor] : lines) {
    const Outcome o = Mge(line);
    EXPECT_EQ(o.code, 2) << line;
    EXPECT_THAT(o.err, AllOf(HasSubstr("has no option '--"), HasSubstr("it is now named " + std::string(successor))))
        << line;
  }
  EXPECT_THAT(Mge("compare good.onnx --compare host").err, testing::Not(HasSubstr("it is now named")));
}

TEST_F(Command, RefusesNanAsANumber) {
  Good();
  for (const char* option : {"run good.onnx --timeout", "run good.onnx --atol", "bench good.onnx --seconds"}) {
    Outcome o = Mge(std::string(option) + " nan");
    EXPECT_EQ(o.code, 2) << option;
    EXPECT_THAT(o.err, HasSubstr("nan is not in")) << option;
  }
}

TEST_F(Command, ExplainsHowToEnableADeviceThatExistsOnDemand) {
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  Good();
  Outcome o = Mge("run good.onnx", "MGE_DEFAULT_DEVICE=virtual0");
  EXPECT_EQ(o.code, 5);
  EXPECT_THAT(o.err, HasSubstr("backend 'virtual' is loaded and lists no device on this machine"));
  EXPECT_THAT(o.err, HasSubstr("virtual.devices=1 or MGE_VIRTUAL_DEVICES=1"));
  EXPECT_THAT(o.err, Not(HasSubstr("no backend that drives")));
  EXPECT_EQ(Mge("run good.onnx", "MGE_DEFAULT_DEVICE=virtual0 MGE_VIRTUAL_DEVICES=1").code, 0);
  EXPECT_THAT(Mge("run good.onnx", "MGE_DEFAULT_DEVICE=virtual3").err, HasSubstr("MGE_VIRTUAL_DEVICES=4"));
  EXPECT_THAT(Mge("run good.onnx", "MGE_DEFAULT_DEVICE=gpu0").err, Not(HasSubstr("VIRTUAL_")));
  EXPECT_THAT(Mge("run good.onnx", "MGE_DEFAULT_DEVICE=gpu0 MGE_VIRTUAL_DEVICES=2").err,
              HasSubstr("make the devices of virtual available as gpu: set virtual.gpu=true or MGE_VIRTUAL_GPU=1"));
}

TEST_F(Command, WarnsIfASkippedBackendDoesNotExist) {
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  EXPECT_THAT(Mge("devices", "MGE_PLUGIN_SKIP=virtal").err,
              HasSubstr("plugin.skip names 'virtal', and no backend that was found has that name. Did you mean"));
  EXPECT_EQ(Mge("devices", "MGE_PLUGIN_SKIP=virtual").err, "");
}

TEST_F(Command, ListsOfDevicesAndSettingsNameRefusedBackendsAndTheReason) {
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  for (const char* command : {"devices", "env virtual"}) {
    Outcome o = Mge(command, "MGE_VIRTUAL_WARP=33");
    EXPECT_EQ(o.code, command == std::string("devices") ? 0 : 2) << o.err;  // no setting of a refused backend is listed
    EXPECT_THAT(o.err, HasSubstr("refused: "));
    EXPECT_THAT(o.err, HasSubstr("mge_virtual.so"));
    EXPECT_THAT(o.err, HasSubstr("MGE_VIRTUAL_WARP"));
    EXPECT_THAT(Mge(command).err, Not(HasSubstr("refused"))) << command;
  }
}

TEST_F(Command, ReportsTheNumberOfStepsOnTheReferenceEvaluator) {
  Model("relu.onnx", {ob::NodeProto("Relu", {"x"}, {"y"})});
  EXPECT_THAT(Mge("run relu.onnx --device cpu0").err, Not(HasSubstr("REFERENCE")));
  EXPECT_THAT(Mge("run relu.onnx --device host").err, HasSubstr("1 of 1 steps by the slow REFERENCE evaluator"));
}

TEST_F(Command, WarnsAboutAnUnknownVariable) {
  Good();
  Outcome o = Mge("run good.onnx -q", "MGE_DEFUALT_DEVICE=cpu0");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("MGE_DEFAULT_DEVICE"));
  EXPECT_THAT(o.err, Not(HasSubstr("cpu0")));  // the warning shows names, never values
  EXPECT_EQ(Mge("run good.onnx", "MGE_DEFUALT_DEVICE=cpu0 MGE_ENV_STRICT=1").code, 2);
}

TEST_F(Command, RefusesBadValuesOfSettings) {
  Good();
  for (const char* env : {"MGE_THREADS=1e99", "MGE_THREADS=-1", "MGE_THREADS=two", "MGE_MEMORY_LIMIT=10QB"}) {
    Outcome o = Mge("run good.onnx", env);
    EXPECT_EQ(o.code, 2) << env;
    EXPECT_THAT(o.err, HasSubstr(std::string(env).substr(0, std::string(env).find('=')))) << env;
  }
  json settings = json::parse(Mge("env --json", "MGE_THREADS=1").out)["settings"];
  for (const json& s : settings) {
    if (s["key"] == "threads") {
      EXPECT_EQ(s["value"], "1");
      EXPECT_EQ(s["origin"], "environment MGE_THREADS");
    }
  }
}

TEST_F(Command, RefusesBadConfigurationFilesAndReadsNoneUnasked) {
  Good();
  Write("mge.toml", "this is no toml [[[");
  EXPECT_EQ(Mge("run good.onnx").code, 0);
  EXPECT_EQ(Mge("run good.onnx --config mge.toml").code, 2);
  Write("unknown.toml", "thraeds = 2\n");
  Outcome o = Mge("run good.onnx --config unknown.toml");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("threads"));
  Write("twice.toml", "threads = 1\nthreads = 2\n");
  EXPECT_EQ(Mge("run good.onnx --config twice.toml").code, 2);
}

// Returns the names of the steps in a trace.
std::vector<std::string> Steps(const std::string& trace) {
  const json parsed = json::parse(trace);
  std::vector<std::string> names;
  for (const json& event : parsed["traceEvents"]) {
    if (event.value("cat", "") == "step") names.push_back(event["name"]);
    if (event["ph"] == "X") {
      EXPECT_GE(event["dur"].get<double>(), 0);
    }
  }
  return names;
}

TEST_F(Command, ProfilerAutostartWritesATraceOfAllRuns) {
  Good();
  EXPECT_EQ(Mge("run good.onnx", "MXNET_PROFILER_AUTOSTART=0").code, 0);
  EXPECT_FALSE(fs::exists(Path("profile.json")));
  EXPECT_EQ(Mge("run good.onnx", "MXNET_PROFILER_AUTOSTART=1").code, 0);
  const Outcome nowhere = Mge("run good.onnx --set profile.file=/nowhere/t.json", "MXNET_PROFILER_AUTOSTART=1");
  EXPECT_NE(nowhere.code, 0);
  EXPECT_THAT(nowhere.err, AllOf(HasSubstr("profile.file"), HasSubstr("/nowhere")));
  EXPECT_THAT(Steps(Read("profile.json")), testing::ElementsAre("Relu_0"));
  EXPECT_EQ(Mge("--set profile.file=t.json run good.onnx", "MXNET_PROFILER_AUTOSTART=1").code, 0);
  EXPECT_THAT(Steps(Read("t.json")), testing::ElementsAre("Relu_0"));
}

TEST_F(Command, ProfilerModeChoosesTheEvents) {
  if (Mge("devices", "MGE_VIRTUAL_DEVICES=1").out.find("virtual0") == std::string::npos) GTEST_SKIP() << "no virtual GPU";
  for (const int mode : {0, 1, 2, 3, 4, 8, 15}) {
    Outcome o = Mge("--set profile.file=t.json run " MGE_SOURCE_DIR "/packaging/digits/digits.onnx --device virtual0",
                    "MGE_VIRTUAL_DEVICES=1 MXNET_PROFILER_AUTOSTART=1 MXNET_PROFILER_MODE=" + std::to_string(mode));
    ASSERT_EQ(o.code, 0) << o.err;
    const std::string trace = Read("t.json");
    const std::vector<std::string> names = Steps(trace);
    const int events = mode == 0 ? 1 : mode == 1 ? 3 : mode;
    EXPECT_EQ(std::count(names.begin(), names.end(), "conv1") > 0, (events & 1) != 0) << mode;
    EXPECT_EQ(std::count(names.begin(), names.end(), "copy of image") > 0, (events & 2) != 0) << mode;
    int calls = 0;
    double most = 0;
    const json parsed = json::parse(trace);
    for (const json& event : parsed["traceEvents"]) {
      calls += event.value("cat", "") == "run" || event.value("cat", "") == "planning";
      if (event["ph"] != "C") continue;
      EXPECT_EQ(event["name"], "memory of virtual0");
      most = std::max(most, event["args"]["bytes"].get<double>());
    }
    EXPECT_EQ(calls > 0, (events & 4) != 0) << mode;
    EXPECT_EQ(most > 0, (events & 8) != 0) << mode;
  }
  EXPECT_EQ(Mge("run good.onnx", "MXNET_PROFILER_MODE=32").code, 2);
}

TEST_F(Command, ATraceHasRowsForTheQueuesOfADeviceAndArrowsForCopies) {
  if (Mge("devices", "MGE_VIRTUAL_DEVICES=1").out.find("virtual0") == std::string::npos) GTEST_SKIP() << "no virtual GPU";
  Outcome o = Mge("--set profile.file=t.json run " MGE_SOURCE_DIR "/packaging/digits/digits.onnx --device virtual0",
                  "MGE_VIRTUAL_DEVICES=1 'MGE_VIRTUAL_FAULT=kernel@3=slow(50ms)' MXNET_PROFILER_AUTOSTART=1 "
                  "MXNET_PROFILER_MODE=3");
  ASSERT_EQ(o.code, 0) << o.err;
  const json trace = json::parse(Read("t.json"));
  json device;
  double slow = 0;                                    // microseconds
  std::map<std::string, std::pair<json, json>> rows;  // by name of the step: process and thread
  std::map<json, std::vector<json>> arrows;           // by their number: start and end
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name" && event["args"]["name"] == "device virtual0") device = event["pid"];
    if (event.value("cat", "") == "step") rows[event["name"]] = {event["pid"], event["tid"]};
    if (event.value("cat", "") == "step") slow = std::max(slow, event["dur"].get<double>());
    if (event["ph"] == "s" || event["ph"] == "f") arrows[event["id"]].push_back(event);
  }
  EXPECT_GT(slow, 0.9 * 50e3) << "the device's time of the kernel that takes 50 ms";
  EXPECT_EQ(rows["conv1"].first, device);
  EXPECT_EQ(rows["copy of image"].first, device);
  EXPECT_NE(rows["conv1"].second, rows["copy of image"].second) << "on different queues";
  EXPECT_EQ(arrows.size(), 2u) << "a copy of the input and one of the output";
  for (const auto& [id, ends] : arrows) {
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(ends[0]["ph"], "s");
    EXPECT_NE(ends[0]["pid"], device);
    EXPECT_EQ(ends[1]["pid"], device);
  }
}

TEST_F(Command, ProfileOfWaitsHasOnlyCopiesAndStepsThatWait) {
  if (Mge("devices", "MGE_VIRTUAL_DEVICES=1").out.find("virtual0") == std::string::npos) GTEST_SKIP() << "no virtual GPU";
  for (const char* only : {"0", "1"}) {
    Outcome o = Mge(
        "--set profile.file=t.json run " MGE_SOURCE_DIR "/packaging/digits/digits.onnx --device virtual0",
        std::string("MGE_VIRTUAL_DEVICES=1 MXNET_PROFILER_AUTOSTART=1 MXNET_PROFILER_MODE=1 MGB_PROFILE_ONLY_WAIT=") + only);
    ASSERT_EQ(o.code, 0) << o.err;
    const std::vector<std::string> names = Steps(Read("t.json"));
    // conv1 waits for the copy of its input; the steps after it are on the same queue.
    EXPECT_THAT(names, testing::IsSupersetOf({"copy of image", "conv1", "copy of probabilities"}));
    for (const char* step : {"pool1", "conv2", "gemm", "softmax"}) {
      EXPECT_EQ(std::count(names.begin(), names.end(), step), *only == '0') << step;
    }
  }
}

TEST_F(Command, MkldnnEnabledSwitchesOneDnnOff) {
  const std::string plan = "plan " MGE_SOURCE_DIR "/packaging/digits/digits.onnx --why --device cpu0";
  const std::string with = Mge(plan).out, without = Mge(plan, "MGE_CPU_ONEDNN=0").out;
  if (without.find("switched off by cpu.onednn") == std::string::npos) GTEST_SKIP() << "the CPU backend has no oneDNN";
  EXPECT_THAT(with, Not(HasSubstr("switched off by cpu.onednn")));
  EXPECT_EQ(Mge(plan, "MXNET_MKLDNN_ENABLED=0").out, without);
  EXPECT_EQ(Mge(plan, "MXNET_MKLDNN_ENABLED=1").out, with);
  EXPECT_EQ(Mge(plan, "MXNET_MKLDNN_ENABLED=0 MGE_CPU_ONEDNN=1").out, with);
  EXPECT_EQ(Mge("--set compute.mkldnn=0 " + plan, "MGE_CPU_ONEDNN=1").out, without);
}

}  // namespace
}  // namespace mge
