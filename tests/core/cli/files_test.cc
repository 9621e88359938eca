// SPDX-License-Identifier: Apache-2.0
// Files that the mge command writes, and its errors about files.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/core/cli/command.h"

namespace mge {
namespace {

namespace ob = onnx_builder;
using nlohmann::json;
using testing::HasSubstr;

TEST_F(Command, WritesEachOutputToAFileOfItsOwn) {
  std::vector<std::string> nodes, outputs;
  for (const char* name : {"a:0", "a_0", "a/0", "a_0_2"}) {
    nodes.push_back(ob::NodeProto("Relu", {"x"}, {name}));
    outputs.push_back(ob::TextField(ob::field::value_info::kName, name));
  }
  Write("m.onnx", ob::ModelProto({.graph = ob::GraphProto({.nodes = nodes,
                                                           .inputs = {ob::ValueInfo("x", DType::kF32, {int64_t{2}})},
                                                           .outputs = outputs})}));
  Outcome o = Mge("run m.onnx --output-dir out --json");
  ASSERT_EQ(o.code, 0) << o.err;
  std::vector<std::string> files;
  const json report = json::parse(o.out);
  for (const json& output : report["outputs"]) files.push_back(output["file"]);
  EXPECT_THAT(files, testing::ElementsAre("out/a_0_3.npy", "out/a_0.npy", "out/a_0_4.npy", "out/a_0_2.npy"));
  for (const std::string& file : files) EXPECT_TRUE(std::filesystem::exists(Path(file))) << file;
}

TEST_F(Command, ReportsAFileThatCannotBeWrittenWithAllPartsOfTheError) {
  Good();
  const std::string commands[] = {"zoo one-op -o absent/m.onnx", "bench good.onnx --runs 3 --trace absent/trace.json"};
  for (const std::string& command : commands) {
    Outcome o = Mge(command + " --json");
    EXPECT_EQ(o.code, 7) << o.err;
    EXPECT_THAT(o.err, HasSubstr("error[E0702]"));
    EXPECT_THAT(o.err, HasSubstr("\n  fix:   "));
    const json error = json::parse(o.out);
    EXPECT_EQ(error["schema"], "mge.error/1");
    EXPECT_EQ(error["exit_code"], 7);
    for (const char* part : {"title", "what", "where", "fix"}) EXPECT_TRUE(error.contains(part)) << part;
    EXPECT_THAT(error["title"], HasSubstr("absent/"));
    EXPECT_NE(error["fix"], "");
  }
}

}  // namespace
}  // namespace mge
