// SPDX-License-Identifier: Apache-2.0
// Files that are not models, and models with truncated or changed bytes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/core/onnx/onnx_test_util.h"
#include "tests/support/read_and_run.h"
#include "tests/support/small_models.h"

namespace mge::onnx {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/mge_test_XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string Path(const std::string& name) const { return path_ / name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }

 private:
  fs::path path_;
};

// Expects that the model runs or fails with a documented error. A crash or an internal error is a failure.
void ExpectErrorOrRun(const Proto& bytes) {
  bool promise_kept = true;
  absl::Status status = ReadAndRun(AsBytes(bytes), &promise_kept);
  EXPECT_TRUE(promise_kept) << FormatError(status);
}

TEST(Malformed, FilesThatAreNotAModelAreErrors) {
  Folder folder;
  ExpectError(ReadModel(folder.Write("empty", "")).status(), errors::kNotOnnx, "byte offset 0");
  ExpectError(ReadModel(folder.Write("text", "hello world, this is no model")).status(), errors::kNotOnnx, "byte offset");
  ExpectError(ReadModel("/proc/self/exe").status(), errors::kNotOnnx, "an ELF program");
  ExpectError(ReadModel(folder.Write("lfs", "version https://git-lfs.github.com/spec/v1\n")).status(), errors::kNotOnnx,
              "git lfs pull");
  ExpectError(ReadModel(folder.Write("zip", "PK\x03\x04xxxx")).status(), errors::kNotOnnx, "zip archive");
}

TEST(Malformed, OnlyRegularFilesAreRead) {
  Folder folder;
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0600), 0);
  ExpectError(ReadModel(folder.Path("fifo")).status(), errors::kFileAccess, "it is a FIFO");
  ExpectError(ReadModel(folder.Path("")).status(), errors::kFileAccess, "it is a directory");
  ExpectError(ReadModel("/dev/zero").status(), errors::kFileAccess, "it is a device");
  ExpectError(ReadModel(folder.Path("absent")).status(), errors::kFileAccess, "No such file");
}

TEST(Malformed, LargeFilesAreRefusedBeforeTheyAreRead) {
  Folder folder;
  std::string path = folder.Write("sparse", "");
  ASSERT_EQ(truncate(path.c_str(), int64_t{3} << 30), 0);
  ExpectError(ReadModel(path).status(), errors::kLimit, "external data");
}

TEST(Malformed, EveryPrefixIsAnErrorWithAnOffsetOrAModel) {
  for (const auto& [name, model] : SmallModels()) {
    ASSERT_TRUE(Read(model).ok()) << name << FormatError(Read(model).status());
    for (size_t n = 0; n < model.size(); ++n) {
      auto read = Read(model.substr(0, n));
      if (read.ok()) continue;  // cut between two fields, after all required ones
      ASSERT_THAT(FormatError(read.status()),
                  ::testing::AnyOf(HasSubstr("byte offset"), HasSubstr("not imported"), HasSubstr("is not implemented")))
          << name << " " << n;
    }
  }
}

TEST(Malformed, EveryChangedByteIsAnErrorOrAModel) {
  for (const auto& [name, model] : SmallModels()) {
    for (size_t i = 0; i < model.size(); ++i) {
      for (unsigned char change : {0x01, 0x80, 0xff}) {
        Proto changed = model;
        changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ change);
        ExpectErrorOrRun(changed);
      }
    }
  }
}

TEST(Malformed, RandomMutationsAreErrorsOrModels) {
  std::mt19937 random(20240611);
  for (const auto& [name, model] : SmallModels()) {
    for (int i = 0; i < 1000; ++i) {
      Proto changed = model;
      for (int n = 1 + static_cast<int>(random() % 8); n > 0; --n) {
        changed[random() % changed.size()] = static_cast<char>(random());
      }
      ExpectErrorOrRun(changed);
    }
  }
  auto good = RunModel(ReluModel(), {{-1, 2}});
  EXPECT_TRUE(good.ok());
}

TEST(Malformed, RealModelsSurviveMutation) {
  const char* data = std::getenv("MGE_TEST_DATA");
  if (!data) GTEST_SKIP() << "MGE_TEST_DATA is not set";
  std::mt19937 random(7);
  for (const auto& entry : fs::directory_iterator(fs::path(data) / "onnx_light")) {
    if (entry.path().extension() != ".onnx") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    Proto model = text.str();
    ASSERT_NE(ErrorId(Read(model).status()), errors::kMalformedModel.id);
    for (int i = 0; i < 20; ++i) {
      Proto changed = model;
      for (int n = 0; n < 8; ++n) changed[random() % changed.size()] = static_cast<char>(random());
      auto read = Read(changed);
      EXPECT_TRUE(read.ok() || ErrorId(read.status()) != 0);
    }
  }
}

Proto NestedBodies(int depth) {
  Proto graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"r"})}, .outputs = {ValueInfo("r", DType::kF32, {2})}});
  for (int i = 0; i < depth; ++i) {
    std::string name = "y" + std::to_string(i);
    graph = GraphProto({.nodes = {NodeProto("If", {"p"}, {name}, {.attributes = {GraphAttr("then_branch", graph)}})},
                        .outputs = {ValueInfo(name, DType::kF32, {2})}});
  }
  return ModelProto({.graph = graph + TextField(field::graph::kInput, ValueInfo("p", DType::kBool, {})) +
                              TextField(field::graph::kInput, ValueInfo("x", DType::kF32, {2}))});
}

TEST(Malformed, DeepNestingIsALimitNotACrash) {
  ExpectError(Read(NestedBodies(2'000)).status(), errors::kLimit, "deeper than 100 levels");
}

TEST(Malformed, NestedMessagesOfUnknownFieldsAreBytes) {
  std::string nested(200'000, '\x0a');
  auto read = Read(ReluModel() + TextField(777, nested));
  EXPECT_TRUE(read.ok()) << FormatError(read.status());
  // If the message is a graph, its first level is already malformed.
  ExpectError(Read(IntField(field::model::kIrVersion, 8) + TextField(field::model::kGraph, nested)).status(),
              errors::kMalformedModel, "");
}

TEST(Malformed, NestedTypesAreALimitNotACrash) {
  Proto type = TensorTypeProto(DType::kF32, {1});
  for (int i = 0; i < 2000; ++i) type = TextField(field::type::kSequence, TextField(field::nested_type::kElement, type));
  Proto model = ModelProto({.graph = GraphProto({.nodes = {NodeProto("Identity", {"x"}, {"y"})},
                                                 .inputs = {ValueInfo("x", type)},
                                                 .outputs = {ValueInfo("y", DType::kF32, {1})}})});
  ExpectError(Read(model).status(), errors::kUnsupportedType, "sequence of sequences");
}

TEST(Malformed, AChainOfAMillionNodesLoads) {
  std::string graph;
  graph.reserve(40'000'000);
  for (int i = 0; i < 1'000'000; ++i) {
    graph += TextField(field::graph::kNode, NodeProto("Relu", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)}));
  }
  graph += TextField(field::graph::kInput, ValueInfo("v0", DType::kF32, {2})) +
           TextField(field::graph::kOutput, ValueInfo("v1000000", DType::kF32, {2}));
  auto read = Read(ModelProto({.graph = graph}));
  ASSERT_TRUE(read.ok()) << FormatError(read.status());
  EXPECT_EQ(read->graph.node_count(), 1'000'000);
  ReadOptions few;
  few.max_nodes = 1000;
  EXPECT_EQ(ErrorId(Read(ModelProto({.graph = graph}), few).status()), errors::kLimit.id);
}

}  // namespace
}  // namespace mge::onnx
