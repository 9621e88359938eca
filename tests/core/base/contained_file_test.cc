// SPDX-License-Identifier: Apache-2.0
#include "core/base/contained_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ContainedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge_test_XXXXXX";
    root_ = mkdtemp(name);
    fs::create_directories(root_ / "model" / "sub");
    Write("model/m.onnx", "model");
    Write("model/data", "data");
    Write("model/sub/data", "data");
    Write("outside", "secret");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& bytes) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }
  DataFolders Folders(const std::string& model) {
    const Fd fd(open((root_ / model).c_str(), O_RDONLY));
    EXPECT_TRUE(fd.valid()) << model;
    return FoldersOf(root_ / model, fd.get());
  }
  // Returns the contents of the file that a model names, or the error.
  std::string Open(const std::string& name, const std::string& model = "model/m.onnx") {
    absl::StatusOr<RegularFile> file = OpenContained(Folders(model), name);
    if (!file.ok()) {
      EXPECT_EQ(ErrorId(file.status()), errors::kFileAccess.id);
      EXPECT_NE(PartsOf(file.status()).fix, "") << FormatError(file.status());
      return FormatError(file.status());
    }
    std::string bytes(static_cast<size_t>(file->size), '\0');
    EXPECT_TRUE(ReadRange(file->fd.get(), 0, std::as_writable_bytes(std::span(bytes)), name).ok());
    return bytes;
  }

  fs::path root_;
};

TEST_F(ContainedFile, IsOpenedByEveryPathThatStaysInside) {
  fs::create_symlink("sub/data", root_ / "model" / "link");
  fs::create_symlink(root_ / "model" / "sub", root_ / "model" / "absolute");
  fs::create_hard_link(root_ / "outside", root_ / "model" / "hard");
  for (const char* name : {"data", "./data", "sub/data", "sub//data", "sub/../data", "absent/../data", "link",
                           "absolute/data", "../model/data", "sub/../../model/data"}) {
    EXPECT_EQ(Open(name), "data") << name;
  }
  EXPECT_EQ(Open("hard"), "secret") << "package managers link files";
}

TEST_F(ContainedFile, IsRefusedIfItLiesOutside) {
  fs::create_symlink(root_ / "outside", root_ / "model" / "link");
  fs::create_symlink("/etc", root_ / "model" / "etc");
  fs::create_symlink("/etc/passwd", root_ / "model" / "passwd");
  fs::create_directories(root_ / "model2");
  Write("model2/data", "secret");  // its path begins like that of the folder
  for (const char* name :
       {"link", "../outside", "sub/../../outside", "etc/passwd", "passwd", "../model2/data", "etc/../etc/passwd"}) {
    EXPECT_THAT(Open(name), HasSubstr("outside of")) << name;
  }
  EXPECT_THAT(Open("/etc/passwd"), HasSubstr("absolute"));
  EXPECT_THAT(Open(root_ / "model" / "data"), HasSubstr("absolute"));
}

TEST_F(ContainedFile, IsRefusedIfItIsNotARegularFile) {
  ASSERT_EQ(mkfifo((root_ / "model" / "fifo").c_str(), 0600), 0);
  fs::create_symlink("loop", root_ / "model" / "loop");
  auto open = [&](const std::string& name) { return FormatError(OpenContained(Folders("model/m.onnx"), name).status()); };
  EXPECT_THAT(open("fifo"), HasSubstr("FIFO"));
  EXPECT_THAT(open("sub"), HasSubstr("directory"));
  EXPECT_THAT(open("."), HasSubstr("directory"));
  EXPECT_THAT(open("loop"), HasSubstr("form a loop"));
  EXPECT_THAT(open("absent"), HasSubstr("No such file"));
  EXPECT_THAT(open(""), HasSubstr("empty"));
  EXPECT_THAT(open(std::string("data\0x", 6)), HasSubstr("zero byte"));
}

TEST_F(ContainedFile, MayLieInTheBlobsOfTheSameCacheEntry) {
  Write("hub/models--a/blobs/1", "model");
  Write("hub/models--a/blobs/2", "data");
  Write("hub/models--b/blobs/3", "secret");
  fs::create_directories(root_ / "hub/models--a/snapshots/r/onnx");
  const fs::path snapshot = root_ / "hub/models--a/snapshots/r";
  fs::create_symlink("../../blobs/1", snapshot / "m.onnx");
  fs::create_symlink("../../blobs/2", snapshot / "m.data");
  fs::create_symlink("../../../blobs/1", snapshot / "onnx/m.onnx");
  fs::create_symlink("../../../blobs/2", snapshot / "onnx/m.data");
  fs::create_symlink("../../../models--b/blobs/3", snapshot / "other");
  Write("hub/models--a/snapshots/r/plain.onnx", "model");  // not a link
  const std::string at = "hub/models--a/snapshots/r/";
  EXPECT_EQ(Open("m.data", at + "m.onnx"), "data");
  EXPECT_EQ(Open("m.data", at + "onnx/m.onnx"), "data");
  EXPECT_EQ(Open("m.data", at + "plain.onnx"), "data");
  EXPECT_THAT(Open("other", at + "m.onnx"), HasSubstr("outside of"));
  EXPECT_THAT(Open("../../../models--b/blobs/3", at + "m.onnx"), HasSubstr("outside of"));
}

TEST_F(ContainedFile, IsFoundBesideTheFileToWhichALinkToTheModelLeads) {
  fs::create_directories(root_ / "links");
  fs::create_symlink(root_ / "model/m.onnx", root_ / "links/m.onnx");
  EXPECT_EQ(Open("data", "links/m.onnx"), "data");
  EXPECT_THAT(Open("../outside", "links/m.onnx"), HasSubstr("outside of"));
}

TEST_F(ContainedFile, HasNoFoldersIfTheModelIsNotInTheFileSystem) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const Fd in(pipes[0]), out(pipes[1]);
  EXPECT_TRUE(FoldersOf("/dev/stdin", in.get()).allowed.empty());
  const Fd deleted(open((root_ / "outside").c_str(), O_RDONLY));
  fs::remove(root_ / "outside");
  EXPECT_TRUE(FoldersOf(root_ / "outside", deleted.get()).allowed.empty());
}

// A thread exchanges a link, again and again. Whatever is opened lies inside.
TEST_F(ContainedFile, CannotBeExchangedBetweenCheckAndUse) {
  const fs::path link = root_ / "model/link";
  std::atomic<bool> stop = false;
  std::thread attacker([&] {
    for (int i = 0; !stop; ++i) {
      const fs::path next = root_ / "next";
      fs::create_symlink(i % 2 ? root_ / "outside" : root_ / "model/data", next);
      fs::rename(next, link);
    }
  });
  const DataFolders folders = Folders("model/m.onnx");
  int opened = 0, refused = 0;
  for (int i = 0; i < 20'000 && (i < 2000 || !opened || !refused); ++i) {
    absl::StatusOr<RegularFile> file = OpenContained(folders, "link");
    if (!file.ok()) {
      ++refused;
      continue;
    }
    ++opened;
    EXPECT_EQ(PathOfOpenFile(file->fd.get()), root_ / "model/data");
  }
  stop = true;
  attacker.join();
  EXPECT_GT(opened, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace mge
