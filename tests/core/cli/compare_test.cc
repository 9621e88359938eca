// SPDX-License-Identifier: Apache-2.0
// Tests of `mge compare`, and of the differences that `mge run --against` shows.
#include <sys/stat.h>

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

class Compare : public Command {
 protected:
  // Writes the model y = x * w + 1 with the nodes "first" (Mul) and "second" (Add).
  void Scaled(const std::string& name, float w) const {
    Model(name,
          {ob::NodeProto("Mul", {"x", "w"}, {"t"}, {.name = "first"}),
           ob::NodeProto("Add", {"t", "one"}, {"y"}, {.name = "second"})},
          {ob::FloatTensor("w", {1}, {w}), ob::FloatTensor("one", {1}, {1})});
  }
  // Writes a shell script that replaces Python and returns its path. Its arguments are -c, the script and the folder.
  std::string Python(const std::string& body) const {
    const std::string path = Write("python", "#!/bin/sh\nfolder=$3\n" + body);
    chmod(path.c_str(), 0755);
    return path;
  }
};

TEST_F(Compare, FindsADeviceEqualToTheReference) {
  Scaled("a.onnx", 2);
  Outcome o = Mge("compare a.onnx --device cpu0 --layers");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("A  a.onnx on cpu0\nB  a.onnx on host"));
  EXPECT_THAT(o.out, HasSubstr("none of 2 values differs"));
}

TEST_F(Compare, NamesTheFirstNodeAtWhichTwoModelsDifferAndTheDifference) {
  Scaled("a.onnx", 2);
  Scaled("b.onnx", 3);
  Outcome o = Mge("compare a.onnx b.onnx --layers --input x.npy");
  EXPECT_EQ(o.code, 7);  // x.npy does not exist yet
  Model("x.onnx", {ob::NodeProto("Identity", {"w"}, {"y"})}, {ob::FloatTensor("w", {2, 3}, {1, 2, 3, -4, 5, 6})});
  ASSERT_EQ(Mge("run x.onnx --output-dir out").code, 0);
  o = Mge("compare a.onnx b.onnx --layers --input out/y.npy");
  EXPECT_EQ(o.code, 8) << o.err;
  EXPECT_THAT(o.out, HasSubstr("first difference at node 'first' (Mul), value 't': 6 of 6 elements differ; "
                               "the worst is element "));
  const json report = json::parse(Mge("compare a.onnx b.onnx --layers --input out/y.npy --json").out);
  EXPECT_EQ(report["schema"], "mge.compare/1");
  EXPECT_EQ(report["equal"], false);
  EXPECT_EQ(report["parts_at"]["node"], "first");
  const json& t = report["layers"][0];  // 2x against 3x
  EXPECT_EQ(t["max_abs_error"], 6);
  EXPECT_DOUBLE_EQ(t["mean_abs_error"].get<double>(), 3.5);
  EXPECT_NEAR(t["max_rel_error"].get<double>(), 1. / 3, 1e-6);
  EXPECT_NEAR(t["mean_rel_error"].get<double>(), 1. / 3, 1e-6);
  EXPECT_EQ(t["worst"]["place"], "[1,2]");
  EXPECT_EQ(t["worst"]["index"], 5);
  EXPECT_EQ(t["worst"]["got"], "12");
  EXPECT_EQ(t["worst"]["expected"], "18");
}

TEST_F(Compare, ReportsThatTwoModelsHaveNoNamesInCommon) {
  Model("a.onnx", {ob::NodeProto("Relu", {"x"}, {"t"}), ob::NodeProto("Neg", {"t"}, {"y"})});
  Write(
      "b.onnx",
      ob::ModelProto({.graph = ob::GraphProto({.nodes = {ob::NodeProto("Relu", {"in"}, {"out"})},
                                               .inputs = {ob::ValueInfo("in", DType::kF32, {int64_t{2}, int64_t{3}})},
                                               .outputs = {ob::ValueInfo("out", DType::kF32, {int64_t{2}, int64_t{3}})}})}));
  Outcome o = Mge("compare a.onnx b.onnx --layers");
  EXPECT_EQ(o.code, 8) << o.err;  // inputs and outputs are matched by position
  EXPECT_THAT(o.out, HasSubstr("no computed value of A has the name of a value of B"));
}

TEST_F(Compare, RefusesOptionsWithoutTheOptionThatTheyNeed) {
  Good();
  Outcome o = Mge("compare good.onnx --all");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("--layers"));
  o = Mge("compare good.onnx --python ./python");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("--with"));
}

TEST_F(Compare, ShowsTheErrorsOfEachOutputOfARun) {
  Good();
  Outcome o = Mge("run good.onnx --against host");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("MAX ABS"));
  const json report = json::parse(Mge("run good.onnx --against host --json").out);
  const json& c = report["outputs"][0]["comparison"];
  EXPECT_EQ(c["equal_within_tolerance"], true);
  EXPECT_EQ(c["max_abs_error"], 0);
  EXPECT_EQ(c["worst"], nullptr);
}

TEST_F(Compare, ComparesWithAnotherRuntime) {
  Good();
  Python(
      "cp $folder/input_0.npy $folder/output_0.npy\n"
      "echo '{\"version\": \"9.9\", \"outputs\": [{\"name\": \"y\", \"file\": \"'$folder/output_0.npy'\"}]}' "
      ">$folder/reply.json\n");
  Outcome o = Mge("compare good.onnx --with onnxruntime --python ./python");
  EXPECT_EQ(o.code, 8) << o.err;  // the script returns the input, MGE its Relu
  EXPECT_THAT(o.out, HasSubstr("good.onnx in onnxruntime 9.9"));
  Model("same.onnx", {ob::NodeProto("Identity", {"x"}, {"y"})});
  EXPECT_EQ(Mge("compare same.onnx --with onnxruntime --python ./python").code, 0);
}

TEST_F(Compare, KeepsItsFilesPrivateAndRemovesThem) {
  Good();
  fs::create_directory(Path("tmp"));
  Python("stat -c %a $folder >" + Path("mode") + "; exit 1\n");
  EXPECT_EQ(Mge("compare good.onnx --with onnxruntime --python ./python", "TMPDIR=" + Path("tmp")).code, 5);
  EXPECT_EQ(Read("mode"), "700\n");
  EXPECT_TRUE(fs::is_empty(Path("tmp")));
}

TEST_F(Compare, NamesTheMissingPythonModule) {
  Good();
  const std::string with = "compare good.onnx --with onnxruntime --python ";
  Outcome o = Mge(with + "./absent");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("'./absent' cannot be started"));
  Python("echo '{\"missing\": \"onnxruntime\"}' >$folder/reply.json\n");
  o = Mge(with + "./python");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("'./python' has no package onnxruntime"));
  EXPECT_THAT(o.err, HasSubstr("./python -m pip install onnxruntime"));
  Python("echo '{\"version\": \"9.9\", \"error\": \"no such operator\"}' >$folder/reply.json\n");
  o = Mge(with + "./python");
  EXPECT_EQ(o.code, 4);
  EXPECT_THAT(o.err, HasSubstr("error[E0403] onnxruntime cannot run the model"));
  EXPECT_THAT(o.err, HasSubstr("no such operator"));
  Python("echo 'it broke' >&2; exit 3\n");
  o = Mge(with + "./python");
  EXPECT_EQ(o.code, 5);
  EXPECT_THAT(o.err, HasSubstr("exit code 3; last line of its output: it broke"));
  EXPECT_EQ(Mge("compare good.onnx --with torch").code, 2);
}

}  // namespace
}  // namespace mge
