// SPDX-License-Identifier: Apache-2.0
// External data: files below the model's directory are read, all others are refused without being opened.
#include "core/onnx/external_data.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

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

TEST_F(ExternalData, FilesThatOthersCanChangeAreReadAndNotMapped) {
  Write(root_ / "model" / "w.bin", Floats({1, 2}));
  fs::permissions(root_ / "model" / "w.bin", fs::perms::all);
  auto model = ReadWith({{"location", "w.bin"}});
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  ASSERT_EQ(truncate((root_ / "model" / "w.bin").c_str(), 0),
            0);  // truncates the file: a mapping would raise SIGBUS
  EXPECT_THAT(Weights(*model), ::testing::ElementsAre(1, 2));
}

TEST_F(ExternalData, FilesOutsideOfTheDirectoryAreNeverOpened) {
  fs::path model = root_ / "model";
  fs::create_symlink(root_ / "sentinel", model / "link");
  fs::create_directory_symlink(root_ / "outside", model / "dir");
  fs::create_hard_link(root_ / "sentinel", model / "hard");
  ASSERT_EQ(mkfifo((model / "fifo").c_str(), 0600), 0);
  struct Case {
    std::string location, why;
  };
  for (const Case& c :
       {Case{"../sentinel", "relative, without '..'"}, Case{"sub/../../sentinel", "'..'"},
        Case{(root_ / "sentinel").string(), "must be relative"}, Case{"link", "symbolic link"},
        Case{"dir/file", "symbolic link"}, Case{"hard", "2 hard links"}, Case{"fifo", "FIFO"},
        Case{"/proc/self/mem", "relative"}, Case{"/dev/zero", "relative"}, Case{"sub", "directory"}, Case{"", "no location"},
        Case{".", "directory"}, Case{"absent", "No such file"}, Case{std::string("w\0.bin", 6), "relative"}}) {
    auto read = ReadWith({{"location", c.location}});
    ExpectError(read.status(), errors::kExternalData, "tensor 'w'");
    EXPECT_THAT(FormatError(read.status()), ::testing::AnyOf(HasSubstr(c.why), HasSubstr("Not a directory"))) << c.location;
    EXPECT_FALSE(SentinelWasOpened()) << c.location;
  }
  std::ifstream(root_ / "sentinel").get();
  EXPECT_TRUE(SentinelWasOpened()) << "the watch itself must work";
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

TEST_F(ExternalData, AChecksumIsNotCheckedWhichTheReaderTells) {
  Write(root_ / "model" / "w.bin", Floats({1, 2}));
  auto model = ReadWith({{"location", "w.bin"}, {"checksum", "00"}});
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_THAT(Weights(*model), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(model->info.liberties, ::testing::ElementsAre("the checksums of its external data are not checked"));
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
  ExpectError(Read(bytes).status(), errors::kExternalData, "was not read from a file");
}

}  // namespace
}  // namespace mge::onnx
