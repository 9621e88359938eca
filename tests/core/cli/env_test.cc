// SPDX-License-Identifier: Apache-2.0
// mge env and mge help for settings.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST_F(Command, EnvFiltersInAnyCaseAndAlsoItsJson) {
  const std::string lower = Mge("env match_range").out;
  EXPECT_EQ(Mge("env MATCH_RANGE").out, lower);
  EXPECT_THAT(lower, AllOf(HasSubstr("plan.match_range"), Not(HasSubstr("engine.type"))));
  const json report = json::parse(Mge("env Match_Range --json").out);
  ASSERT_EQ(report["settings"].size(), 1u);
  EXPECT_EQ(report["settings"][0]["key"], "plan.match_range");
}

TEST_F(Command, EnvShowsUnitAndOwner) {
  EXPECT_THAT(Mge("env run.timeout_seconds").out, AllOf(HasSubstr("UNIT"), HasSubstr("seconds"), HasSubstr("core")));
  EXPECT_THAT(Mge("env virtual.devices").out, HasSubstr("virtual"));
}

TEST_F(Command, EnvWithoutAMatchIsAnErrorThatNamesTheNearestSetting) {
  const Outcome o = Mge("env NNVM_EXEC_MATCH_RANG_");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, AllOf(HasSubstr("NNVM_EXEC_MATCH_RANG_"), HasSubstr("'NNVM_EXEC_MATCH_RANGE'")));
  EXPECT_EQ(Mge("env --changed").code, 0);  // nothing was changed, and nothing was searched
}

TEST_F(Command, EnvAliasesListsTheNamesOfOtherSystems) {
  const std::string out = Mge("env --aliases").out;
  for (const char* name : {"MXNET_ENGINE_TYPE", "NNVM_EXEC_MATCH_RANGE", "MEGENGINE_EXECUTION_STRATEGY", "MGB_JIT_BACKEND",
                           "MGE_DEFAULT_DEVICE", "GE_USE_STATIC_MEMORY", "CUDA_BIN_PATH", "Ascend GE", "MegEngine"}) {
    EXPECT_THAT(out, HasSubstr(name));
  }
  EXPECT_THAT(out, Not(HasSubstr("MGE_THREADS")));
  for (const json& s : json::parse(Mge("env --aliases --json").out)["settings"]) EXPECT_FALSE(s["foreign"].empty());
}

TEST_F(Command, EnvAliasesListsWhereADefaultDiffersFromThatOfItsPage) {
  const std::string out = Mge("env --aliases").out;
  EXPECT_THAT(out, ContainsRegex("MEGENGINE_HOST_COMPUTE +MegEngine +plan.host_compute +0 +1"));
  EXPECT_THAT(out, ContainsRegex("MXNET_GPU_MEM_POOL_TYPE +MXNet +memory.gpu_pool +[a-zA-Z]+ +Naive"));
  EXPECT_THAT(out, ContainsRegex("MXNET_ENGINE_TYPE +MXNet +engine.type +ThreadedEnginePerDevice +-"));
  EXPECT_THAT(out, ContainsRegex("MXNET_GLUON_REPO +MXNet +data.repository +- +https://"));
  EXPECT_THAT(out, ContainsRegex("MGB_CONV_PROFILING_TIMEOUT +MegEngine +select.profiling_timeout_seconds +0 +-"));
}

TEST_F(Command, EnvMarksUnstableSettings) {
  EXPECT_THAT(Mge("env plan.match_range").out, HasSubstr("dynamic, unstable"));
  EXPECT_THAT(Mge("env plan.inplace").out, Not(HasSubstr("unstable")));
  EXPECT_THAT(Mge("env explain plan.match_range").out, HasSubstr("unstable: a later version may change or remove it"));
  EXPECT_EQ(json::parse(Mge("env match_range --json").out)["settings"][0]["unstable"], true);
}

TEST_F(Command, EnvNamesTheSuccessorOfARemovedName) {
  for (const char* line : {"env plan.num_temp", "env explain plan.num_temp", "help plan.num_temp"}) {
    const Outcome o = Mge(line);
    EXPECT_EQ(o.code, 2) << line;
    EXPECT_THAT(o.err, HasSubstr("it is now named plan.workspaces")) << line;
  }
  EXPECT_THAT(Mge("env explain MGE_STRICT_ENV").err, HasSubstr("it is now named MGE_ENV_STRICT"));
  const Outcome set = Mge("devices --set select.frozen=kernels.toml");
  EXPECT_EQ(set.code, 2);
  EXPECT_THAT(set.err, HasSubstr("\"select.replay\""));
  EXPECT_THAT(Mge("devices", "MGE_VIRTUAL_MEMORY=1G").err, HasSubstr("\"MGE_VIRTUAL_MEMORY_BYTES\""));
}

TEST_F(Command, EnvExplainAndHelpDescribeASettingByAnyOfItsNames) {
  for (const char* line : {"env explain MXNET_GPU_MEM_POOL_TYPE", "help MXNET_GPU_MEM_POOL_TYPE"}) {
    const Outcome o = Mge(line, "MXNET_GPU_MEM_POOL_TYPE=Round");
    EXPECT_EQ(o.code, 0) << line << o.err;
    EXPECT_THAT(o.out, AllOf(HasSubstr("memory.gpu_pool"), HasSubstr("(MXNet)"), HasSubstr("Naive"), HasSubstr("first-set"),
                             HasSubstr("round (environment MXNET_GPU_MEM_POOL_TYPE)"),
                             HasSubstr("MXNET_GPU_MEM_POOL_TYPE=Naive mge run model.onnx")))
        << line;
  }
  EXPECT_THAT(Mge("env explain plan.match_range").out, HasSubstr("mge run model.onnx --set plan.match_range=0"));
  // Values are spelled as on the page of the name that was asked for.
  EXPECT_THAT(Mge("env explain GE_USE_STATIC_MEMORY").out,
              AllOf(HasSubstr("0, 1, 2, 3, 4"), HasSubstr("0 = off, 1 = static, 2 = static, 3 = dynamic, 4 = both"),
                    HasSubstr("GE_USE_STATIC_MEMORY=1 mge run"), Not(HasSubstr("dynamic, both"))));
  EXPECT_THAT(Mge("env explain MEGENGINE_HOST_COMPUTE").out, ContainsRegex("page default +1"));
  EXPECT_THAT(Mge("env explain memory.gpu_pool").out, ContainsRegex("see also .*memory.pool"));
  EXPECT_THAT(Mge("help data.decode_threads").out, HasSubstr("MXNET_MP_OPENCV_NUM_THREADS"));
  EXPECT_EQ(json::parse(Mge("env explain MGE_THREADS --json").out)["settings"][0]["key"], "threads");
}

TEST_F(Command, EnvExplainOfAnUnknownNameIsAnErrorThatNamesTheNearest) {
  for (const char* line : {"env explain MXNET_GPU_MEM_POOL_TIPE", "help MXNET_GPU_MEM_POOL_TIPE"}) {
    const Outcome o = Mge(line);
    EXPECT_EQ(o.code, 2) << line;
    EXPECT_THAT(o.err, HasSubstr("'MXNET_GPU_MEM_POOL_TYPE'")) << line;
  }
}

}  // namespace
}  // namespace mge
