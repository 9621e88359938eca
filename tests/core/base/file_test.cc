// SPDX-License-Identifier: Apache-2.0
#include "core/base/file.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/base/file_trust.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge_test_XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Path(const std::string& name) const { return root_ / name; }
  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string Content(const std::string& name) {
    std::ifstream in(Path(name), std::ios::binary);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
  }
  int Files() { return static_cast<int>(std::distance(fs::directory_iterator(root_), fs::directory_iterator())); }

  fs::path root_;
};

TEST_F(FileTest, DoesNotTrustAFileThatOthersCanChangeOrReplace) {
  std::string path = Write("a", "content");
  Fd fd(open(path.c_str(), O_RDONLY));
  EXPECT_EQ(WhyNotTrusted(fd.get()), "");
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_THAT(WhyNotTrusted(fd.get()), HasSubstr("writable by others (mode 666)"));
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  ASSERT_EQ(chmod(root_.c_str(), 0777), 0);  // others could replace the file
  EXPECT_THAT(WhyNotTrusted(fd.get()), HasSubstr("writable by others (mode 777)"));
}

// With Debian's umask of 0002 files are writable by the group, and each user has a private group.
TEST_F(FileTest, TrustsTheOwnersPrivateGroupAndNoOther) {
  std::string path = Write("a", "content");
  auto why = [&] {
    Fd fd(open(path.c_str(), O_RDONLY));
    return WhyNotTrusted(fd.get());
  };
  const passwd* user = getpwuid(geteuid());
  const group* own = user ? getgrgid(user->pw_gid) : nullptr;
  bool is_private = own && std::string(own->gr_name) == user->pw_name && own->gr_mem[0] == nullptr;
  ASSERT_EQ(chmod(path.c_str(), 0664), 0);
  if (is_private) {
    EXPECT_EQ(why(), "");
  }
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_THAT(why(), HasSubstr("writable by others"));
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another group";
  const group* other = getgrnam("users");
  ASSERT_NE(other, nullptr);
  ASSERT_EQ(chown(path.c_str(), 0, other->gr_gid), 0);
  ASSERT_EQ(chmod(path.c_str(), 0664), 0);
  EXPECT_THAT(why(), HasSubstr("writable by others"));
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(why(), "");
}

// With an access list, the mode's group bits are the mask for every user and group that the list names.
TEST_F(FileTest, TrustsNoGroupWhereThereIsAnAccessList) {
  std::string path = Write("a", "content");
  // user::rw- user:12345:rw- group::r-- mask::rw- other::r--
  const unsigned char list[] = {2, 0,    0,    0,   1,   0,   6,    0, 255, 255, 255, 255, 2,   0,    6,
                                0, 0x39, 0x30, 0,   0,   4,   0,    4, 0,   255, 255, 255, 255, 0x10, 0,
                                6, 0,    255,  255, 255, 255, 0x20, 0, 4,   0,   255, 255, 255, 255};
  if (setxattr(path.c_str(), "system.posix_acl_access", list, sizeof(list), 0) != 0) {
    GTEST_SKIP() << "this file system has no access lists";
  }
  Fd fd(open(path.c_str(), O_RDONLY));
  EXPECT_THAT(WhyNotTrusted(fd.get()), HasSubstr("writable by others"));
}

TEST_F(FileTest, RefusesAFileThatIsNotRegular) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const std::string& path : {Path("fifo"), Path(""), std::string("/dev/zero"), Path("absent"), std::string("")}) {
    auto file = OpenRegularFile(path);
    EXPECT_EQ(ErrorId(file.status()), errors::kFileAccess.id) << path;
  }
}

TEST_F(FileTest, ReadRangeBeyondTheEndNamesTheFileSize) {
  auto file = OpenRegularFile(Write("a", "12345"));
  ASSERT_TRUE(file.ok());
  std::byte buffer[4];
  EXPECT_TRUE(ReadRange(file->fd.get(), 1, buffer, "a").ok());
  EXPECT_THAT(FormatError(ReadRange(file->fd.get(), 3, buffer, "a")), HasSubstr("it ends at byte 5; 2 more are needed"));
}

TEST_F(FileTest, WritesTheWholeFileOrNothing) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), AsBytes("one")).ok());
  EXPECT_EQ(Content("a"), "one");
  {
    auto file = AtomicFile::Create(Path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append(AsBytes("half")).ok());
    EXPECT_EQ(Content("a"), "one");
  }
  EXPECT_EQ(Content("a"), "one");
  EXPECT_EQ(Files(), 1) << "what was begun is removed";
  ASSERT_TRUE(WriteFileAtomically(Path("a"), AsBytes("two")).ok());
  EXPECT_EQ(Content("a"), "two");
}

TEST_F(FileTest, PrivateFilesAreForTheOwnerOnly) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), AsBytes("x"), FileMode::kPrivate).ok());
  struct stat st;
  ASSERT_EQ(stat(Path("a").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
}

TEST_F(FileTest, WritesThroughASymbolicLink) {
  Write("target", "old");
  fs::create_symlink("target", root_ / "link");
  ASSERT_TRUE(WriteFileAtomically(Path("link"), AsBytes("new")).ok());
  EXPECT_TRUE(fs::is_symlink(root_ / "link"));
  EXPECT_EQ(Content("target"), "new");
}

TEST_F(FileTest, ReplacesASymbolicLinkIfAskedTo) {
  Write("target", "old");
  fs::create_symlink("target", root_ / "link");
  ASSERT_TRUE(WriteFileAtomically(Path("link"), AsBytes("new"), FileMode::kShared, LinkMode::kReplace).ok());
  EXPECT_FALSE(fs::is_symlink(root_ / "link"));
  EXPECT_EQ(Content("target"), "old");
}

TEST_F(FileTest, RemovesTheTemporaryFilesOfKilledWritersAndNoOthers) {
  const pid_t child = fork();
  if (child == 0) {
    auto half = AtomicFile::Create(Path("a"));
    if (!half.ok() || !half->Append(AsBytes("half")).ok()) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(Files(), 1);
  Write("notes.tmp", "mine");
  Write(".mge-notes", "mine");
  fs::create_directory(root_ / ".mge-folder.tmp");
  ASSERT_EQ(mkfifo(Path(".mge-fifo.tmp").c_str(), 0600), 0);

  auto at_work = AtomicFile::Create(Path("b"));
  ASSERT_TRUE(at_work.ok());
  EXPECT_EQ(Files(), 5) << "that of the killed writer is gone, that of a living one is there";
  ASSERT_TRUE(WriteFileAtomically(Path("c"), AsBytes("third")).ok());
  ASSERT_TRUE(at_work->Append(AsBytes("second")).ok());
  ASSERT_TRUE(at_work->Commit().ok());
  EXPECT_EQ(Content("b"), "second");
  EXPECT_EQ(Content("c"), "third");
  EXPECT_EQ(Files(), 6);
}

TEST_F(FileTest, WritersOfOneFolderDoNotDisturbOneAnother) {
  std::vector<std::thread> writers;
  std::atomic<int> failed = 0;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < 50; ++i) failed += !WriteFileAtomically(Path(std::to_string(w)), AsBytes("x")).ok();
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Files(), 4);
}

TEST_F(FileTest, NeverReplacesAFileThatIsNotRegular) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const std::string& path :
       {Path("fifo"), root_.string(), std::string("/dev/null"), Path("no/such/place"), std::string()}) {
    EXPECT_EQ(ErrorId(WriteFileAtomically(path, AsBytes("x"))), errors::kFileWrite.id) << path;
  }
  EXPECT_TRUE(fs::is_fifo(root_ / "fifo"));
}

TEST_F(FileTest, KeepsTheOldFileIfTheDiskIsFull) {
  Write("a", "old");
  // A file size limit simulates a full disk. Its signal must not end the process.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = {4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  absl::Status status = WriteFileAtomically(Path("a"), AsBytes(std::string(10'000, 'x')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(ErrorId(status), errors::kFileWrite.id);
  EXPECT_THAT(FormatError(status), HasSubstr("4096 bytes were written, 5904 more are needed"));
  EXPECT_EQ(Content("a"), "old");
  EXPECT_EQ(Files(), 1);
}

TEST(EscapeControl, KeepsTextAndEscapesControlCharacters) {
  EXPECT_EQ(EscapeControl("Größe 模型"), "Größe 模型");
  EXPECT_EQ(EscapeControl("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(EscapeControl("\xc2\x9b"
                          "31m"),
            "\\u009b31m");  // a C1 control character
  EXPECT_EQ(EscapeControl("a\xe2\x80\xae"
                          "b"),
            "a\\u202eb");  // changes the direction of text
  EXPECT_EQ(EscapeControl("\xff\xc0\xaf\xed\xa0\x80"),
            "\\xff\\xc0\\xaf\\xed\\xa0\\x80");  // not UTF-8
}

}  // namespace
}  // namespace mge
