// SPDX-License-Identifier: Apache-2.0
// Files that the mge command writes, and its errors about files.
#include <algorithm>
#include <cstring>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

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

// Returns the names of the files in a folder, in order.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the float32 elements of a .npy file, which are behind its header.
std::vector<float> FloatsOf(const std::string& npy) {
  const size_t header = 10 + static_cast<unsigned char>(npy[8]) + 256 * static_cast<unsigned char>(npy[9]);
  std::vector<float> out((npy.size() - header) / sizeof(float));
  std::memcpy(out.data(), npy.data() + header, out.size() * sizeof(float));
  return out;
}

TEST_F(Command, DumpsTheValuesOfStepsAndOnRequestTheirInputs) {
  Write("m.onnx",
        ob::ModelProto(
            {.graph = ob::GraphProto(
                 {.nodes = {ob::NodeProto("Add", {"a", "b"}, {"s/1"}), ob::NodeProto("Sin", {"s/1"}, {"y"})},
                  .inputs = {ob::ValueInfo("a", DType::kF32, {int64_t{3}}), ob::ValueInfo("b", DType::kF32, {int64_t{3}})},
                  .outputs = {ob::TextField(ob::field::value_info::kName, "y")}})}));
  for (const char* device : {"cpu0", "virtual0"}) {
    if (Mge("devices", "MGE_VIRTUAL_DEVICES=1").out.find(device) == std::string::npos) continue;
    const std::string run = std::string("run m.onnx --output-dir out --device ") + device;
    const std::string folder = std::string("dump-") + device;
    for (const char* inputs : {"0", "1"}) {
      Outcome o = Mge(run + " --dump-dir " + folder + inputs, std::string("MGE_VIRTUAL_DEVICES=1 MGB_DUMP_INPUT=") + inputs);
      ASSERT_EQ(o.code, 0) << o.err;
    }
    const std::vector<std::string> plain = FilesIn(Path(folder + "0")), with = FilesIn(Path(folder + "1"));
    EXPECT_GT(with.size(), plain.size()) << device;
    EXPECT_TRUE(std::includes(with.begin(), with.end(), plain.begin(), plain.end())) << device;
    EXPECT_THAT(plain, testing::Contains(testing::EndsWith("_y.npy")));
    EXPECT_THAT(with, testing::IsSupersetOf({testing::EndsWith("-inp0_a.npy"), testing::EndsWith("-inp1_b.npy")}));
    for (const std::string& name : with) {
      const std::vector<float> values = FloatsOf(Read(folder + "1/" + name));
      EXPECT_EQ(values.size(), 3u) << name;
      if (name.ends_with("_y.npy") && name.find("inp") == std::string::npos) {
        EXPECT_EQ(values, FloatsOf(Read("out/y.npy"))) << device;
      }
    }
  }
  Write("file", "");
  Outcome o = Mge("run m.onnx --dump-dir file/dump");
  EXPECT_EQ(o.code, 7) << o.err;
  EXPECT_THAT(o.err, HasSubstr("file/dump"));
}

}  // namespace
}  // namespace mge
