// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/blob_cache.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/base/errors.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::HasSubstr;

class Blobs : public testing::Test {
 protected:
  std::string Directory() const { return folder_.At("blobs"); }
  BlobCache Open(uint64_t max_bytes = 1 << 20, std::string_view build = "build1") const {
    return BlobCache({Directory(), max_bytes}, build);
  }
  std::vector<std::filesystem::path> Files() const {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::directory_iterator(Directory())) out.push_back(entry.path());
    return out;
  }
  uint64_t Bytes() const {
    uint64_t sum = 0;
    for (const auto& file : Files()) sum += std::filesystem::file_size(file);
    return sum;
  }
  PluginFolder folder_;
};

TEST_F(Blobs, AreFoundByTheNextProcess) {
  const std::string binary("\0code\xff", 6);
  EXPECT_EQ(Open().Load(AsBytes("conv 3x3")), std::nullopt);
  ASSERT_TRUE(Open().Store(AsBytes("conv 3x3"), AsBytes(binary)).ok());
  EXPECT_EQ(Open().Load(AsBytes("conv 3x3")), binary);
  EXPECT_EQ(Open().Load(AsBytes("conv 1x1")), std::nullopt);
  ASSERT_TRUE(Open().Store(AsBytes("conv 3x3"), AsBytes("")).ok());  // replaces it
  EXPECT_EQ(Open().Load(AsBytes("conv 3x3")), "");
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(Blobs, OfAnotherBuildAreNotFound) {
  ASSERT_TRUE(Open().Store(AsBytes("key"), AsBytes("1")).ok());
  EXPECT_EQ(Open(1 << 20, "build2").Load(AsBytes("key")), std::nullopt);
  ASSERT_TRUE(Open(1 << 20, "build2").Store(AsBytes("key"), AsBytes("2")).ok());
  EXPECT_EQ(Open().Load(AsBytes("key")), "1");
}

TEST_F(Blobs, DamagedAtAnyByteAreNotFoundAndCanBeStoredAgain) {
  const std::string data = "a compiled kernel";
  ASSERT_TRUE(Open().Store(AsBytes("key"), AsBytes(data)).ok());
  const std::string path = Files()[0];
  const std::string good = ReadAll(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_EQ(Open().Load(AsBytes("key")), std::nullopt) << "byte " << i;
    std::ofstream(path, std::ios::binary) << good.substr(0, i);
    EXPECT_EQ(Open().Load(AsBytes("key")), std::nullopt) << "cut at " << i;
  }
  std::ofstream(path, std::ios::binary) << good << "x";
  EXPECT_EQ(Open().Load(AsBytes("key")), std::nullopt);
  ASSERT_TRUE(Open().Store(AsBytes("key"), AsBytes(data)).ok());
  EXPECT_EQ(Open().Load(AsBytes("key")), data);
}

TEST_F(Blobs, ThoseNotUsedForTheLongestTimeAreRemovedFirst) {
  const std::string data(1000, 'x');
  const BlobCache cache = Open(5000);
  auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(12)); };  // above the clock's tick
  for (const char* key : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(cache.Store(AsBytes(key), AsBytes(data)).ok());
    pause();
  }
  EXPECT_TRUE(cache.Load(AsBytes("a")).has_value());
  pause();
  ASSERT_TRUE(cache.Store(AsBytes("e"), AsBytes(data)).ok());
  EXPECT_TRUE(cache.Load(AsBytes("a")).has_value());
  EXPECT_FALSE(cache.Load(AsBytes("b")).has_value());
  EXPECT_TRUE(cache.Load(AsBytes("e")).has_value());
  EXPECT_LE(Bytes(), 5000u);
  const absl::Status large = cache.Store(AsBytes("f"), AsBytes(std::string(6000, 'x')));
  EXPECT_EQ(ErrorId(large), errors::kLimit.id);
  EXPECT_THAT(FormatError(large), HasSubstr("cache.bytes"));
  EXPECT_TRUE(cache.Load(AsBytes("e")).has_value());
}

TEST_F(Blobs, EightWritersShareADirectoryWithoutATornBlob) {
  constexpr uint64_t kLimit = 20000;
  std::vector<pid_t> children;
  for (int writer = 0; writer < 8; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      const BlobCache cache = Open(kLimit);
      bool good = true;
      for (int i = 0; i < 60; ++i) {
        const std::string key = "key" + std::to_string(i % 12);
        const std::string data(static_cast<size_t>(500 + 200 * (i % 12)), static_cast<char>('a' + i % 12));
        good &= cache.Store(AsBytes(key), AsBytes(data)).ok();
        const std::optional<std::string> got = cache.Load(AsBytes("key" + std::to_string((i + writer) % 12)));
        const size_t expected = static_cast<size_t>(500 + 200 * ((i + writer) % 12));
        good &= !got || (got->size() == expected && got->find_first_not_of(got->front()) == got->npos);
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_LE(Bytes(), kLimit);
  for (const auto& file : Files()) EXPECT_EQ(file.extension(), ".blob");
}

TEST_F(Blobs, OnAFullDiskStoringFailsAndOldBlobsStay) {
  std::filesystem::create_directory(Directory());
  // A disk of 64 KiB, seen by the child only.
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("mge", Directory().c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) {
      _exit(77);
    }
    const BlobCache cache = Open();
    const std::string large(16 << 10, 'x'), rest = Directory() + "/rest";
    const bool stored = cache.Store(AsBytes("old"), AsBytes("code")).ok();
    {
      std::ofstream fill(rest);
      for (int i = 0; i < 64 && fill; ++i) fill << std::string(1024, 'x') << std::flush;
    }
    const absl::Status full = cache.Store(AsBytes("new"), AsBytes(large));
    const bool refused = ErrorId(full) == errors::kFileWrite.id && FormatError(full).find("space") != std::string::npos;
    const bool clean = Files().size() == 2 && !cache.Load(AsBytes("new")) && cache.Load(AsBytes("old")) == "code";
    std::filesystem::remove(rest);
    const bool again = cache.Store(AsBytes("new"), AsBytes(large)).ok() && cache.Load(AsBytes("new")) == large;
    _exit((stored ? 0 : 1) + (refused ? 0 : 2) + (clean ? 0 : 4) + (again ? 0 : 8));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs the right to mount a disk";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: not stored, 2: not refused, 4: a blob or a file is wrong, 8: not stored later";
}

TEST_F(Blobs, ADirectoryThatOthersCanWriteIsNotUsed) {
  ASSERT_TRUE(Open().Store(AsBytes("key"), AsBytes("code")).ok());
  EXPECT_EQ(std::filesystem::status(Directory()).permissions(), std::filesystem::perms(0700));
  folder_.Mode("blobs", 0777);
  EXPECT_EQ(Open().Load(AsBytes("key")), std::nullopt);
  const absl::Status stored = Open().Store(AsBytes("key"), AsBytes("code"));
  EXPECT_EQ(ErrorId(stored), errors::kFileWrite.id);
  EXPECT_THAT(FormatError(stored), testing::AllOf(HasSubstr("writable by others"), HasSubstr("cache.dir")));
}

TEST_F(Blobs, WithoutADirectoryOrALimitNothingIsKept) {
  EXPECT_FALSE(BlobCache({"", 1000}, "b").Store(AsBytes("key"), AsBytes("code")).ok());
  EXPECT_FALSE(Open(0).Store(AsBytes("key"), AsBytes("code")).ok());
  EXPECT_EQ(Open(0).Load(AsBytes("key")), std::nullopt);
  EXPECT_FALSE(BlobCache({"/proc/none/blobs", 1000}, "b").Store(AsBytes("key"), AsBytes("code")).ok());
}

}  // namespace
}  // namespace mge
