// SPDX-License-Identifier: Apache-2.0
// Models and tensors from pipes, and model files as tools lay them out: links into a cache, links beside the model.
#include <filesystem>

#include "core/base/npy.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

namespace fs = std::filesystem;
namespace ob = onnx_builder;
using nlohmann::json;
using testing::HasSubstr;

class InputPath : public Command {
 protected:
  // Runs a line of bash in the folder; $mge is the command.
  Outcome Bash(const std::string& line) const {
    Write("line.sh", line);
    const std::string shell = "cd " + folder_ +
                              " && mge='timeout 240 " MGE_BINARY_DIR
                              "/bin/mge' bash -o pipefail line.sh >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(shell.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Read("stdout.txt"), Read("stderr.txt")};
  }

  // Writes the model y = x * w, whose weights are in another file: 2, 3, 4.
  void WithData(const std::string& name, const std::string& location) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    Write(name, ob::ModelProto({.graph = ob::GraphProto({.nodes = {ob::NodeProto("Mul", {"x", "w"}, {"y"})},
                                                         .inputs = {ob::ValueInfo("x", DType::kF32, {int64_t{3}})},
                                                         .outputs = {ob::ValueInfo("y", DType::kF32, {int64_t{3}})},
                                                         .initializers = {ob::ExternalTensor("w", DType::kF32, {3},
                                                                                             {{"location", location}})}})}));
  }
  void Data(const std::string& name) const {
    const float values[] = {2, 3, 4};
    fs::create_directories(fs::path(Path(name)).parent_path());
    Write(name, std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  }
};

TEST_F(InputPath, OfAModelMayBeAPipeForEveryCommand) {
  Good();
  for (const char* command : {"run - --digest", "run /dev/stdin", "run - --against host", "inspect -", "plan -", "memory -",
                              "profile -", "bench - --runs 2 --warm 1", "compare -"}) {
    const Outcome piped = Bash(std::string("cat good.onnx | $mge --device cpu0 ") + command);
    EXPECT_EQ(piped.code, 0) << command << "\n" << piped.err;
  }
  EXPECT_EQ(Bash("$mge run --device cpu0 - <good.onnx").code, 0);
  EXPECT_EQ(Bash("$mge run --device cpu0 <(cat good.onnx)").code, 0);
  EXPECT_EQ(Bash("$mge compare --device cpu0 <(cat good.onnx) <(cat good.onnx)").code, 0);
}

TEST_F(InputPath, OfATensorMayBeAPipeInEveryFormat) {
  Good();
  ASSERT_EQ(Mge("run good.onnx --device cpu0 --output-dir out").code, 0);  // y.npy has the shape of x
  const std::string npy = Read("out/y.npy");
  const std::string values = npy.substr(npy.size() - 24);
  Write("x.pb", ob::RawTensor("x", DType::kF32, {2, 3}, values));
  ASSERT_EQ(std::system(("cd " + folder_ + " && cp out/y.npy x.npy && zip -q x.npz x.npy").c_str()) != -1, true);
  const Outcome file = Mge("run good.onnx --device cpu0 --input x=x.npy --json");
  ASSERT_EQ(file.code, 0) << file.err;
  for (const char* line : {"cat x.npy | $mge run good.onnx --device cpu0 --json --input x=-",
                           "cat x.npy | $mge run good.onnx --device cpu0 --json --input -",
                           "cat x.npy | $mge run good.onnx --device cpu0 --json --input x=/dev/stdin",
                           "cat x.pb | $mge run good.onnx --device cpu0 --json --input x=-",
                           "$mge run good.onnx --device cpu0 --json --input x=- <x.npy",
                           "$mge run good.onnx --device cpu0 --json --input x=<(cat x.npy)"}) {
    const Outcome piped = Bash(line);
    ASSERT_EQ(piped.code, 0) << line << "\n" << piped.err;
    EXPECT_EQ(json::parse(piped.out)["outputs"][0]["values"], json::parse(file.out)["outputs"][0]["values"]) << line;
  }
}

// The model y = a + b, and pair.npz with the arrays a and b.
class InputArchive : public InputPath {
 protected:
  void SetUp() override {
    InputPath::SetUp();
    Write("sum.onnx",
          ob::ModelProto({.graph = ob::GraphProto({.nodes = {ob::NodeProto("Add", {"a", "b"}, {"y"})},
                                                   .inputs = {ob::ValueInfo("a", DType::kF32, {int64_t{2}}),
                                                              ob::ValueInfo("b", DType::kF32, {int64_t{2}})},
                                                   .outputs = {ob::ValueInfo("y", DType::kF32, {int64_t{2}})}})}));
    Array("a", {1, 2});
    Array("b", {10, 20});
    Array("bb", {100, 200});
    Zip("pair.npz", "b.npy a.npy");
  }
  void Array(const std::string& name, std::vector<float> values) const {
    Write(name + ".npy", *NpyBytes(Tensor::Of<float>({static_cast<int64_t>(values.size())}, values)));
  }
  void Zip(const std::string& name, const std::string& members) const {
    ASSERT_EQ(std::system(("cd " + folder_ + " && zip -q " + name + " " + members).c_str()), 0);
  }
  json Sum(const std::string& options) const {
    const Outcome o = Mge("run sum.onnx --device cpu0 --json " + options);
    EXPECT_EQ(o.code, 0) << options << "\n" << o.err;
    return o.code == 0 ? json::parse(o.out)["outputs"][0]["values"] : json();
  }
  std::string Refusal(const std::string& options) const {
    const Outcome o = Mge("run sum.onnx --device cpu0 " + options);
    EXPECT_EQ(o.code, 2) << options << "\n" << o.err;
    return o.err;
  }
};

TEST_F(InputArchive, GivesTheInputsThatItsArraysName) {
  EXPECT_EQ(Sum("--input pair.npz"), "11 22");
  EXPECT_EQ(Sum("--input a=pair.npz --input b=bb.npy"), "101 202");
  EXPECT_EQ(Sum("--input a=pair.npz:b --input pair.npz:b"), "20 40");
  Zip("one.npz", "b.npy");
  EXPECT_EQ(Sum("--input one.npz --input a.npy"), "11 22");
  Zip("other.npz", "bb.npy");  // an array with another name is the next input
  EXPECT_EQ(Sum("--input other.npz --input b.npy"), "110 220");
  EXPECT_EQ(Mge("run sum.onnx --device cpu0 --input one.npz --shape a=2").code, 0);
}

TEST_F(InputArchive, NamesTheArraysThatItLacksAndThoseThatAreNoInputs) {
  Zip("half.npz", "b.npy");
  const std::string lacks = Refusal("--input half.npz");
  EXPECT_THAT(lacks, HasSubstr("--input half.npz: it has no array for the input 'a'"));
  EXPECT_THAT(lacks, HasSubstr("--input a=FILE"));
  Zip("more.npz", "a.npy b.npy bb.npy");
  const std::string more = Refusal("--input more.npz");
  EXPECT_THAT(more, HasSubstr("its array 'bb' is not an input of the model"));
  EXPECT_THAT(more, HasSubstr("did you mean 'b'?"));
  EXPECT_THAT(Refusal("--input pair.npz --input a=a.npy"), HasSubstr("input 'a' is given twice"));
  const Outcome piped = Bash("cat pair.npz | $mge run sum.onnx --device cpu0 --input -");
  EXPECT_EQ(piped.code, 3);
  EXPECT_THAT(piped.err, HasSubstr("it holds: b, a"));
  EXPECT_THAT(piped.err, HasSubstr("name one, as in 'FILE.npz:b'"));
}

// The model fails for the first values that are generated, so others are tried.
TEST_F(InputArchive, IsReadOnceIfOtherInputsAreGeneratedAgain) {
  Write("log.onnx",
        ob::ModelProto(
            {.graph = ob::GraphProto(
                 {.nodes = {ob::NodeProto("Log", {"a"}, {"l"}), ob::NodeProto("Add", {"l", "b"}, {"y"})},
                  .inputs = {ob::ValueInfo("a", DType::kF32, {int64_t{2}}), ob::ValueInfo("b", DType::kF32, {int64_t{2}})},
                  .outputs = {ob::ValueInfo("y", DType::kF32, {int64_t{2}})}})}));
  for (const char* command : {"run", "bench --runs 2 --warm 1", "profile --runs 2"}) {
    const Outcome o = Bash(std::string("cat b.npy | $mge ") + command + " log.onnx --device cpu0 --input b=-");
    EXPECT_EQ(o.code, 0) << command << "\n" << o.err;
    EXPECT_THAT(o.err, HasSubstr("other values are used")) << command;
  }
}

TEST_F(InputPath, OfSomethingElseIsAnErrorThatNamesIt) {
  Good();
  const Outcome text = Bash("echo hello | $mge run -");
  EXPECT_EQ(text.code, 3);
  EXPECT_THAT(text.err, HasSubstr("/dev/stdin"));
  EXPECT_EQ(Bash("true | $mge run -").code, 3);
  const Outcome device = Bash("$mge run - </dev/null");
  EXPECT_EQ(device.code, 7);
  EXPECT_THAT(device.err, HasSubstr("it is a device"));
  EXPECT_EQ(Bash("$mge run - <&-").code, 7);
}

TEST_F(InputPath, OfAModelInAHubsCacheIsALinkToItsBlobs) {
  WithData("models--a/blobs/1", "model.onnx_data");
  Data("models--a/blobs/2");
  fs::create_directories(Path("models--a/snapshots/r"));
  fs::create_symlink("../../blobs/1", Path("models--a/snapshots/r/model.onnx"));
  fs::create_symlink("../../blobs/2", Path("models--a/snapshots/r/model.onnx_data"));
  for (const char* command : {"run", "inspect", "plan", "memory", "profile", "bench --runs 2 --warm 1", "compare"}) {
    const Outcome o = Mge(std::string("--device cpu0 ") + command + " models--a/snapshots/r/model.onnx");
    EXPECT_EQ(o.code, 0) << command << "\n" << o.err;
  }
}

TEST_F(InputPath, OfDataOutsideOfTheModelsFolderIsRefused) {
  Data("outside/data");
  WithData("model/m.onnx", "link");
  fs::create_symlink(Path("outside/data"), Path("model/link"));
  const Outcome o = Mge("run model/m.onnx");
  EXPECT_EQ(o.code, 3) << o.err;
  EXPECT_THAT(o.err, HasSubstr("outside of"));
  EXPECT_THAT(o.err, HasSubstr("fix:   copy the file into"));
}

TEST_F(InputPath, OfTheDataOfAPipedModelIsNamedByAnOption) {
  Data("data/w.bin");
  WithData("m.onnx", "w.bin");
  const Outcome without = Bash("cat m.onnx | $mge run - --device cpu0");
  EXPECT_EQ(without.code, 3) << without.err;
  EXPECT_THAT(without.err, HasSubstr("--data-folder"));
  const Outcome with = Bash("cat m.onnx | $mge run - --device cpu0 --data-folder data");
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(Mge("run m.onnx --device cpu0 --data-folder data").code, 0);
  const Outcome absent = Mge("run m.onnx --device cpu0 --data-folder absent");
  EXPECT_EQ(absent.code, 7) << absent.err;
}

}  // namespace
}  // namespace mge
