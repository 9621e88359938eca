// SPDX-License-Identifier: Apache-2.0
// External data: files in the folders of the model are read, all others are refused without being opened. Large weights.
#include "core/onnx/external_data.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/lazy_bytes.h"
#include "fmt/format.h"
#include "tests/core/onnx/onnx_test_util.h"

namespace mge::onnx {
namespace {

namespace fs = std::filesystem;
using Entries = std::vector<std::pair<std::string, std::string>>;

// A model in root/model, and a file root/sentinel outside of it. The tests watch whether the sentinel is opened.
class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge_test_XXXXXX";
    root_ = mkdtemp(name);
    fs::create_directories(root_ / "model" / "sub");
    fs::create_directories(root_ / "outside");
    Write(root_ / "sentinel", std::string(64, 's'));
    Write(root_ / "outside" / "file", std::string(64, 's'));
    watch_ = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    inotify_add_watch(watch_, (root_ / "sentinel").c_str(), IN_OPEN);
    inotify_add_watch(watch_, (root_ / "outside" / "file").c_str(), IN_OPEN);
  }
  void TearDown() override {
    close(watch_);
    fs::remove_all(root_);
  }

  void Write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  std::string Floats(const std::vector<float>& values) {
    std::string out(values.size() * 4, '\0');
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
  bool SentinelWasOpened() {
    char buffer[4096];
    return read(watch_, buffer, sizeof(buffer)) > 0;
  }

  // Reads the model y = x + w, where w is external data described by the entries.
  absl::StatusOr<::mge::onnx::Model> ReadWith(const Entries& entries, DType dtype = DType::kF32) {
    Proto bytes = ModelProto({.graph = GraphProto({.nodes = {NodeProto("Add", {"x", "w"}, {"y"})},
                                                   .inputs = {ValueInfo("x", dtype, {2})},
                                                   .outputs = {ValueInfo("y", dtype, {2})},
                                                   .initializers = {ExternalTensor("w", dtype, {2}, entries)}})});
    Write(root_ / "model" / "m.onnx", bytes);
    return ReadModel(root_ / "model" / "m.onnx");
  }
  std::vector<float> Weights(const ::mge::onnx::Model& model) {
    for (ValueId id = 0; id < model.graph.value_count(); ++id) {
      const Value& value = model.graph.value(id);
      if (value.role == Role::kConstant) {
        auto data = value.constant.Data<float>();
        return {data.begin(), data.end()};
      }
    }
    return {};
  }

  fs::path root_;
  int watch_ = -1;
};

TEST_F(ExternalData, IsReadFromBeneathTheModelsDirectory) {
  Write(root_ / "model" / "w.bin", "abcd" + Floats({1, 2, 3}));
  Write(root_ / "model" / "sub" / "w.bin", "x" + Floats({5, 6}));
  auto plain = ReadWith({{"location", "w.bin"}, {"offset", "4"}, {"length", "8"}});
  ASSERT_TRUE(plain.ok()) << FormatError(plain.status());
  EXPECT_THAT(Weights(*plain), ::testing::ElementsAre(1, 2));
  auto unaligned = ReadWith({{"location", "sub/w.bin"}, {"offset", "1"}});
  ASSERT_TRUE(unaligned.ok()) << FormatError(unaligned.status());
  EXPECT_THAT(Weights(*unaligned), ::testing::ElementsAre(5, 6));
}

TEST_F(ExternalData, FilesOutsideOfTheDirectoryAreNeverOpened) {
  fs::path model = root_ / "model";
  fs::create_symlink(root_ / "sentinel", model / "link");
  fs::create_directory_symlink(root_ / "outside", model / "dir");
  ASSERT_EQ(mkfifo((model / "fifo").c_str(), 0600), 0);
  struct Case {
    std::string location, why;
  };
  for (const Case& c :
       {Case{"../sentinel", "outside of"}, Case{"sub/../../sentinel", "outside of"},
        Case{(root_ / "sentinel").string(), "absolute"}, Case{"link", "outside of"}, Case{"dir/file", "outside of"},
        Case{"fifo", "FIFO"}, Case{"/proc/self/mem", "absolute"}, Case{"/dev/zero", "absolute"}, Case{"sub", "directory"},
        Case{"", "no location"}, Case{".", "directory"}, Case{"absent", "No such file"},
        Case{std::string("w\0.bin", 6), "zero byte"}}) {
    auto read = ReadWith({{"location", c.location}});
    ExpectError(read.status(), errors::kExternalData, "tensor 'w'");
    EXPECT_THAT(FormatError(read.status()), HasSubstr(c.why)) << c.location;
    EXPECT_FALSE(SentinelWasOpened()) << c.location;
  }
  std::ifstream(root_ / "sentinel").get();
  EXPECT_TRUE(SentinelWasOpened()) << "the watch itself must work";
}

TEST_F(ExternalData, IsReadThroughLinksThatStayInside) {
  Write(root_ / "model" / "w.bin", Floats({1, 2}));
  Write(root_ / "outside" / "shared", Floats({3, 4}));
  fs::create_symlink("../w.bin", root_ / "model" / "sub" / "link");
  fs::create_hard_link(root_ / "outside" / "shared", root_ / "model" / "hard");
  auto link = ReadWith({{"location", "sub/../sub/link"}});
  ASSERT_TRUE(link.ok()) << FormatError(link.status());
  EXPECT_THAT(Weights(*link), ::testing::ElementsAre(1, 2));
  auto hard = ReadWith({{"location", "hard"}});
  ASSERT_TRUE(hard.ok()) << FormatError(hard.status());
  EXPECT_THAT(Weights(*hard), ::testing::ElementsAre(3, 4));
}

TEST_F(ExternalData, MayLieInAFolderThatTheUserNames) {
  Write(root_ / "outside" / "w.bin", Floats({3, 4}));
  ASSERT_FALSE(ReadWith({{"location", "w.bin"}}).ok());  // writes the model
  auto model = ReadModel(root_ / "model" / "m.onnx", {.data_folder = root_ / "outside"});
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_THAT(Weights(*model), ::testing::ElementsAre(3, 4));
  ExpectError(ReadModel(root_ / "model" / "m.onnx", {.data_folder = root_ / "absent"}).status(), errors::kFileAccess,
              "absent");
}

// A model with large weights in its own file and in another one.
class LargeWeights : public ExternalData {
 public:
  static constexpr int64_t kCount = 32 << 10;
  void SetUp() override {
    ExternalData::SetUp();
    const std::vector<float> ones(kCount, 1), twos(kCount, 2);
    Write(root_ / "model" / "w.bin", Floats(twos));
    Write(root_ / "model" / "m.onnx",
          ModelProto({.graph = GraphProto(
                          {.nodes = {NodeProto("Add", {"a", "b"}, {"y"})},
                           .outputs = {ValueInfo("y", DType::kF32, {kCount})},
                           .initializers = {RawTensor("a", DType::kF32, {kCount}, Floats(ones)),
                                            ExternalTensor("b", DType::kF32, {kCount}, {{"location", "w.bin"}})}})}));
  }
  // Reads a weight of the model. Returns its last element, or the error.
  static std::string Last(const ::mge::onnx::Model& model, const std::string& name) {
    for (ValueId id = 0; id < model.graph.value_count(); ++id) {
      if (model.graph.value(id).name != name) continue;
      absl::StatusOr<Tensor> held = model.graph.value(id).constant.Held();
      return held.ok() ? fmt::format("{}", held->Data<float>().back()) : FormatError(held.status());
    }
    return "absent";
  }
};

TEST_F(LargeWeights, AreReadWhenTheyAreNeeded) {
  auto model = ReadModel(root_ / "model" / "m.onnx");
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_EQ(Last(*model, "a"), "1");
  EXPECT_EQ(Last(*model, "b"), "2");
  EXPECT_EQ(Last(*model, "b"), "2");
}

TEST_F(LargeWeights, ThatChangedSinceTheModelWasReadAreAnError) {
  auto model = ReadModel(root_ / "model" / "m.onnx");
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  Write(root_ / "model" / "w.bin", Floats(std::vector<float>(kCount, 3)));
  EXPECT_THAT(Last(*model, "b"), HasSubstr("'w.bin' has changed since it was opened"));
  EXPECT_EQ(Last(*model, "a"), "1");
  ASSERT_EQ(truncate((root_ / "model" / "m.onnx").c_str(), 100), 0);
  EXPECT_THAT(Last(*model, "a"), HasSubstr("has changed since it was opened"));
}

TEST_F(LargeWeights, OfAFileThatWasReplacedAreThoseThatWereLoaded) {
  auto model = ReadModel(root_ / "model" / "m.onnx");
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  Write(root_ / "model" / "new", Floats(std::vector<float>(kCount, 3)));
  fs::rename(root_ / "model" / "new", root_ / "model" / "w.bin");
  EXPECT_EQ(Last(*model, "b"), "2");
}

TEST_F(LargeWeights, HaveOneKeyForAllReadersOfAFile) {
  auto first = ReadModel(root_ / "model" / "m.onnx"), second = ReadModel(root_ / "model" / "m.onnx");
  ASSERT_TRUE(first.ok() && second.ok());
  std::set<std::string> keys;
  for (const auto* model : {&*first, &*second}) {
    for (ValueId id = 0; id < model->graph.value_count(); ++id) {
      if (const LazyBytes* lazy = model->graph.value(id).constant.lazy()) keys.insert(lazy->key());
    }
  }
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_FALSE(keys.contains(""));
}

TEST_F(ExternalData, InThousandsOfFilesDoesNotUseUpTheOpenFiles) {
  constexpr int64_t kCount = 16 << 10;
  std::vector<std::string> weights, nodes;
  for (int i = 0; i < 100; ++i) {
    const std::string name = fmt::format("w{}", i);
    Write(root_ / "model" / name, Floats(std::vector<float>(kCount, static_cast<float>(i))));
    weights.push_back(ExternalTensor(name, DType::kF32, {kCount}, {{"location", name}}));
    nodes.push_back(NodeProto("Relu", {name}, {"y" + name}));
  }
  Write(root_ / "model" / "m.onnx",
        ModelProto({.graph = GraphProto(
                        {.nodes = nodes, .outputs = {ValueInfo("yw99", DType::kF32, {kCount})}, .initializers = weights})}));
  const auto before = std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  auto model = ReadModel(root_ / "model" / "m.onnx");
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_LE(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()), before + 65);
  EXPECT_EQ(LargeWeights::Last(*model, "w99"), "99");
}

TEST_F(ExternalData, DevicesInTheDirectoryAreRefused) {
  if (mknod((root_ / "model" / "zero").c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) GTEST_SKIP() << "needs root";
  ExpectError(ReadWith({{"location", "zero"}}).status(), errors::kExternalData, "device");
}

TEST_F(ExternalData, OffsetsAndLengthsAreChecked) {
  Write(root_ / "model" / "w.bin", Floats({1, 2}));
  auto with = [&](const std::string& key, const std::string& value) {
    return ReadWith({{"location", "w.bin"}, {key, value}}).status();
  };
  ExpectError(with("offset", "-1"), errors::kExternalData, "'-1'");
  ExpectError(with("offset", "1"), errors::kExternalData, "has 8 bytes; 8 are needed from byte 1");
  ExpectError(with("offset", "9223372036854775807"), errors::kExternalData, "8 are needed");
  ExpectError(with("offset", "9223372036854775808"), errors::kExternalData, "expected a number");
  ExpectError(with("offset", "4x"), errors::kExternalData, "'4x'");
  ExpectError(with("length", "1e18"), errors::kExternalData, "'1e18'");
  ExpectError(with("length", "4"), errors::kExternalData, "needs 8 bytes, length is 4");
  ExpectError(with("length", "16"), errors::kExternalData, "length is 16");
  ExpectError(with("color", "red"), errors::kExternalData, "key 'color' is unknown");
  ExpectError(with("location", "w.bin"), errors::kExternalData, "given twice");
}

TEST_F(ExternalData, AChecksumIsNotCheckedAndTheReaderSaysSo) {
  Write(root_ / "model" / "w.bin", Floats({1, 2}));
  auto model = ReadWith({{"location", "w.bin"}, {"checksum", "00"}});
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_THAT(Weights(*model), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(model->info.deviations, ::testing::ElementsAre("the checksums of its external data are not checked"));
}

TEST_F(ExternalData, SizesComeFromTheShape) {
  Write(root_ / "model" / "w.bin", "");
  ASSERT_EQ(truncate((root_ / "model" / "w.bin").c_str(), int64_t{3} << 30),
            0);  // a sparse file, which takes no space
  auto model = ReadWith({{"location", "w.bin"}, {"offset", "3221225464"}});
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_THAT(Weights(*model), ::testing::ElementsAre(0, 0));
}

TEST_F(ExternalData, NeedsADirectory) {
  Proto bytes =
      ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"w"}, {"y"})},
                                       .outputs = {ValueInfo("y", DType::kF32, {2})},
                                       .initializers = {ExternalTensor("w", DType::kF32, {2}, {{"location", "w.bin"}})}})});
  ExpectError(Read(bytes).status(), errors::kExternalData, "--data-folder");
}

}  // namespace
}  // namespace mge::onnx
