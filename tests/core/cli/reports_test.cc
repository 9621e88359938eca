// SPDX-License-Identifier: Apache-2.0
// Reports of a model's steps: times, traces, estimates beside measurements, bodies of control flow.
#include <algorithm>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;
namespace ob = onnx_builder;

class Reports : public Command {};

TEST_F(Reports, ProfilesAModel) {
  Model("m.onnx",
        {ob::NodeProto("Exp", {"x"}, {"a"}, {.name = "first"}), ob::NodeProto("Softmax", {"a"}, {"y"}, {.name = "last"})});
  Outcome o = Mge("profile m.onnx --runs 4");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* text :
       {"device cpu0", "4 runs", "first", "last", "between steps", "sum: the wall time", "100.0 %", "Softmax"}) {
    EXPECT_THAT(o.out, HasSubstr(text));
  }
  json report = json::parse(Mge("profile m.onnx --runs 4 --json").out);
  double sum = report["planning_us"].get<double>() + report["between_steps_us"].get<double>();
  for (const json& s : report["steps"]) sum += s["time_us"].get<double>();
  EXPECT_NEAR(sum, report["wall_us"].get<double>(), 0.01);
  EXPECT_EQ(report["steps"].size(), 2u);
}

// Returns the model x -> Relu -> If(sum(x) > 0) {Exp, Neg} : Tanh -> y.
std::string BranchModel() {
  const std::string then_branch =
      ob::GraphProto({.nodes = {ob::NodeProto("Exp", {"a"}, {"e"}), ob::NodeProto("Neg", {"e"}, {"t"})},
                      .outputs = {ob::TextField(ob::field::value_info::kName, "t")}});
  const std::string else_branch = ob::GraphProto(
      {.nodes = {ob::NodeProto("Tanh", {"a"}, {"f"})}, .outputs = {ob::TextField(ob::field::value_info::kName, "f")}});
  return ob::NodeProto("If", {"go"}, {"y"},
                       {.attributes = {ob::GraphAttr("then_branch", then_branch), ob::GraphAttr("else_branch", else_branch)},
                        .name = "choice"});
}

TEST_F(Reports, ShowsBodiesAsPartsOfTheModel) {
  Model("m.onnx", {ob::NodeProto("Relu", {"x"}, {"a"}, {.name = "first"}),
                   ob::NodeProto("ReduceSum", {"x"}, {"s"}, {.attributes = {ob::IntAttr("keepdims", 0)}}),
                   ob::NodeProto("Cast", {"s"}, {"go"}, {.attributes = {ob::IntAttr("to", 9)}}), BranchModel()});
  Outcome o = Mge("plan m.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* text : {"choice.then_branch:", "choice.else_branch:", "Exp", "Tanh"}) EXPECT_THAT(o.out, HasSubstr(text));
  o = Mge("profile m.onnx --runs 3");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("choice.then_branch: "));
  json memory = json::parse(Mge("memory m.onnx --json").out);
  EXPECT_EQ(memory["planned_peak_bytes"], memory["measured_peak_bytes"]);
  ASSERT_EQ(memory["bodies"].size(), 1u);
  EXPECT_EQ(memory["bodies"][0]["body"], "choice.then_branch");
  json bench = json::parse(Mge("bench m.onnx --runs 3 --json").out);
  json plan = json::parse(Mge("plan m.onnx --json").out);
  EXPECT_GT(bench["steps"], plan["steps"]);
  EXPECT_EQ(json::parse(Mge("run m.onnx --json").out)["steps"], bench["steps"]);
  EXPECT_EQ(bench["planned_peak_bytes"], bench["measured_peak_bytes"]);
}

TEST_F(Reports, ShowsWhatModelsSaveBySharingTheirArenas) {
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  auto model = [&](const char* name, int64_t rows) {
    Model(name, {ob::NodeProto("Softmax", {"x"}, {"a"}), ob::NodeProto("Softmax", {"a"}, {"y"})}, {}, {rows, int64_t{1024}});
  };
  model("a.onnx", 64), model("b.onnx", 192);
  const std::string command = "memory a.onnx b.onnx --device virtual0 --set memory.pool=unpooled";
  const json own = json::parse(Mge(command + " --json", "MGE_VIRTUAL_DEVICES=1").out);
  const json shared = json::parse(Mge(command + " --json", "GE_USE_STATIC_MEMORY=2 MGE_VIRTUAL_DEVICES=1").out);
  EXPECT_EQ(own["schema"], "mge.models_memory/1");
  const uint64_t a = own["models"][0]["arena_bytes"], b = own["models"][1]["arena_bytes"];
  EXPECT_GT(a, 64u * 4096);
  EXPECT_EQ(own["arena_bytes"], a + b);
  EXPECT_EQ(own["held_arena_bytes"], a + b);
  EXPECT_EQ(own["saved_bytes"], 0);
  EXPECT_EQ(shared["held_arena_bytes"], b);
  EXPECT_EQ(shared["saved_bytes"], a);
  EXPECT_EQ(shared["shared_arenas"]["virtual0"], b);
  EXPECT_LT(shared["device_peak_charged_bytes"], own["device_peak_charged_bytes"]);

  const Outcome o = Mge(command, "GE_USE_STATIC_MEMORY=2 MGE_VIRTUAL_DEVICES=1");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* text : {"a.onnx", "b.onnx", "shared arena of virtual0: ", " saved by sharing"}) {
    EXPECT_THAT(o.out, HasSubstr(text));
  }
  const Outcome refused = Mge(command + " --set static_memory_policy=0", "GE_USE_STATIC_MEMORY=2 MGE_VIRTUAL_DEVICES=1");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("the variable GE_USE_STATIC_MEMORY and the option static_memory_policy"));
}

TEST_F(Reports, MeasuresTheStepsOfAPlan) {
  Model("m.onnx",
        {ob::NodeProto("Exp", {"x"}, {"a"}, {.name = "first"}), ob::NodeProto("Softmax", {"a"}, {"y"}, {.name = "last"})});
  Outcome o = Mge("plan m.onnx --why --measure");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* text : {"us in the run, estimated", "the run took", "0 of 2 steps have an estimate that is wrong"}) {
    EXPECT_THAT(o.out, HasSubstr(text));
  }
  json report = json::parse(Mge("plan m.onnx --measure --json").out);
  EXPECT_EQ(report["schema"], "mge.plan/1");
  EXPECT_EQ(report["measured"]["runs"], 5);
  for (const json& unit : report["units"]) EXPECT_GT(unit["in_the_run"]["median_us"], 0);
}

TEST_F(Reports, MarkAnEstimateThatIsWrong) {
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  Good();
  const std::string slow = "MGE_VIRTUAL_DEVICES=1 'MGE_VIRTUAL_FAULT=kernel@1+=slow(5ms)'";
  Outcome o = Mge("bench good.onnx --device virtual0 --runs 3 --json", slow);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["estimate"]["off"], true);
  EXPECT_THAT(o.err, Not(HasSubstr("the planner estimated")));  // no estimate holds for a device in software
  o = Mge("plan good.onnx --device virtual0 --measure", slow);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("<-- OFF: "));
  EXPECT_THAT(o.out, HasSubstr("1 of "));
}

TEST_F(Reports, WritesATraceOfABench) {
  Good();
  Outcome o = Mge("bench good.onnx --runs 3 --trace t.json --json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(json::parse(o.out).contains("estimate"));
  json trace = json::parse(Read("t.json"));
  EXPECT_GE(std::count_if(trace["traceEvents"].begin(), trace["traceEvents"].end(),
                          [](const json& e) { return e["ph"] == "X" && e["cat"] == "step"; }),
            3);
  EXPECT_EQ(Mge("bench good.onnx --runs 3 --trace nowhere/t.json").code, 7);
}

}  // namespace
}  // namespace mge
