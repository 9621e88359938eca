// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/tuning_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "fmt/format.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kKey[] = "0123456789abcdef0123456789abcdef";

TuningRecord Sample() {
  return {.text = "Conv float32[1,3,8,8]",
          .timings = {{"direct", 12.5, false, ""},
                      {"blind", 1, false, "not checked"},
                      {"tiled", -1, false, "no\tluck\n"},
                      {"winograd", -1, true, "output 0"},
                      {"stuck", -1, false, "left out", 0.5}}};
}

TEST(TuningText, WriteThenReadIsTheSame) {
  auto record = ParseTuningText(kKey, TuningText(kKey, Sample()));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->text, Sample().text);
  ASSERT_EQ(record->timings.size(), 5u);
  EXPECT_EQ(record->Find("direct")->us, 12.5);
  EXPECT_EQ(record->Find("direct")->fault, "");
  EXPECT_EQ(record->Find("blind")->us, 1);
  EXPECT_EQ(record->Find("blind")->fault, "not checked");
  EXPECT_EQ(record->Find("tiled")->fault, "no luck ");
  EXPECT_FALSE(record->Find("tiled")->wrong);
  EXPECT_TRUE(record->Find("winograd")->wrong);
  EXPECT_EQ(record->Find("winograd")->limit_s, 0);
  EXPECT_EQ(record->Find("stuck")->limit_s, 0.5);
  EXPECT_EQ(record->Find("stuck")->fault, "left out");
  EXPECT_EQ(record->Find("fft"), nullptr);
}

TEST(TuningText, EveryPrefixAndEveryFlippedBitIsDetected) {
  const std::string good = TuningText(kKey, Sample());
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(ParseTuningText(kKey, good.substr(0, n)).ok()) << n;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(ParseTuningText(kKey, bad).ok()) << "bit " << bit;
  }
}

TEST(TuningText, OfAnotherProblemIsRefused) {
  EXPECT_FALSE(ParseTuningText("f123456789abcdef0123456789abcdef", TuningText(kKey, Sample())).ok());
}

TEST(TuningText, OfAnotherVersionIsRefusedEvenIfItsNumberBeginsWithOurs) {
  for (const char* head : {"mge.tuning/20", "mge.tuning/2 ", "mge.tuning/2\t", "mge.tuning/", "mge.tuning/1"}) {
    std::string text = TuningText(kKey, Sample());
    text.replace(0, text.find('\n'), head);
    text.resize(text.rfind("sum\t"));
    text += fmt::format("sum\t{:016x}\n", XXH3_64bits(text.data(), text.size()));
    EXPECT_THAT(FormatError(ParseTuningText(kKey, text).status()), HasSubstr("another version")) << head;
  }
}

TEST(TuningCache, InMemoryKeepsAndMergesEntries) {
  TuningCache cache;
  EXPECT_FALSE(cache.Find(kKey).has_value());
  cache.Add(kKey, Sample());
  cache.Add(kKey, {.text = "Conv", .timings = {{"tiled", 3, false, ""}}});
  EXPECT_EQ(cache.Find(kKey)->Find("tiled")->us, 3);
  EXPECT_EQ(cache.Find(kKey)->Find("direct")->us, 12.5);
}

TEST(TuningCache, ConcurrentProcessesLoseNothing) {
  std::string directory = testing::TempDir() + "mge_tuning_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  constexpr int kProcesses = 6, kEach = 8;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    pid_t child = fork();
    if (child == 0) {
      TuningCache cache(directory);
      for (int i = 0; i < kEach; ++i) {
        cache.Add(kKey, {.text = "Conv", .timings = {{fmt::format("kernel {}.{}", p, i), 1, false, ""}}});
      }
      _exit(cache.writable() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  auto record = TuningCache(directory).Find(kKey);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->timings.size(), static_cast<size_t>(kProcesses * kEach));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) files += entry.is_regular_file();
  EXPECT_EQ(files, 2);  // the entry and the lock
  std::filesystem::remove_all(directory);
}

TEST(TuningCache, WaitsForALockUpToTheTimeLimitOfTheRunAndWritesLater) {
  std::string directory = testing::TempDir() + "mge_tuning_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  constexpr char kLater[] = "a123456789abcdef0123456789abcdef";
  Fd held(open(fmt::format("{}/lock", directory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  TuningCache cache(directory);
  StopControl stop;
  std::thread adding([&] { cache.Add(kKey, Sample(), &stop); });
  while (!cache.Find(kKey)) std::this_thread::yield();  // entries are visible while the writer waits
  EXPECT_FALSE(cache.Find(kLater).has_value());
  EXPECT_FALSE(TuningCache(directory).Find(kKey).has_value());
  stop.cancel = kStopAsked;
  adding.join();
  EXPECT_TRUE(cache.writable());
  held = Fd();
  cache.Add(kLater, Sample());
  TuningCache again(directory);
  EXPECT_TRUE(again.Find(kKey).has_value());
  EXPECT_TRUE(again.Find(kLater).has_value());
  std::filesystem::remove_all(directory);
}

// ---------------------------------------------------------------- shared and read-only directories

constexpr char kOther[] = "f123456789abcdef0123456789abcdef";
constexpr char kThird[] = "e123456789abcdef0123456789abcdef";

class SharedTuning : public testing::Test {
 protected:
  SharedTuning() : umask_(umask(022)) {
    directory_ = testing::TempDir() + "mge_shared_XXXXXX";
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    chmod(directory_.c_str(), 0777);
  }
  ~SharedTuning() override {
    umask(umask_);
    chmod(directory_.c_str(), 0777);
    std::filesystem::remove_all(directory_);
  }
  std::string At(const std::string& name) const { return fmt::format("{}/{}", directory_, name); }
  std::string Entry(const std::string& key) const { return At(fmt::format("{}.tuning", key)); }

  // Runs `f` in a child process and returns its result. If the current user is root, the child runs as an unprivileged user.
  template <typename F>
  static std::string AsAnother(F&& f) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 &&
          (setgroups(0, nullptr) != 0 || setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)) {
        _exit(1);
      }
      const std::string text = f();
      _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string out;
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) out.append(buffer, static_cast<size_t>(n));
    close(ends[0]);
    int status = 1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return out;
  }

  // A cache that keeps its warnings.
  struct Heard {
    explicit Heard(const std::string& directory)
        : cache(directory,
                Logger(
                    LogLevel::kWarning,
                    [](void* self, LogLevel, std::string_view m) { static_cast<Heard*>(self)->warnings.emplace_back(m); },
                    this)) {}
    std::vector<std::string> warnings;
    TuningCache cache;
  };
  std::string directory_;
  mode_t umask_;
};

TEST_F(SharedTuning, ASecondUserReadsAndAdds) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  TuningCache(directory_).Add(kKey, Sample());
  EXPECT_EQ(std::filesystem::status(At("lock")).permissions(), std::filesystem::perms(0644));
  EXPECT_EQ(AsAnother([&] {
              Heard heard(directory_);
              if (!heard.cache.Find(kKey)) return std::string("the first user's times are not found");
              heard.cache.Add(kKey, {.text = "Conv", .timings = {{"tiled", 3, false, ""}}});
              heard.cache.Add(kOther, {.text = "Relu", .timings = {{"plain", 4, false, ""}}});
              return heard.warnings.empty() ? std::string("well") : heard.warnings[0];
            }),
            "well");
  TuningCache again(directory_);
  ASSERT_TRUE(again.Find(kKey).has_value() && again.Find(kOther).has_value());
  EXPECT_EQ(again.Find(kKey)->Find("direct")->us, 12.5);
  EXPECT_EQ(again.Find(kKey)->Find("tiled")->us, 3);
  EXPECT_EQ(again.Find(kOther)->Find("plain")->us, 4);
}

TEST_F(SharedTuning, TheUmaskDecidesWhoMayUseTheLock) {
  for (mode_t mask : {0, 027, 077}) {
    umask(mask);
    std::filesystem::remove(At("lock"));
    TuningCache(directory_).Add(kKey, Sample());
    EXPECT_EQ(static_cast<mode_t>(std::filesystem::status(At("lock")).permissions()), 0666 & ~mask);
  }
}

TEST_F(SharedTuning, AReadOnlyDirectoryIsStillRead) {
  for (const char* key : {kKey, kOther}) TuningCache(directory_).Add(key, Sample());
  chmod(directory_.c_str(), 0555);
  const std::string said = AsAnother([&] {
    Heard heard(directory_);
    if (!heard.cache.Find(kKey)) return std::string("not found before");
    heard.cache.Add(kThird, Sample());
    heard.cache.Add(kThird, Sample());
    if (!heard.cache.Find(kOther)) return std::string("not found after a write that failed");
    if (!heard.cache.Find(kThird)) return std::string("not kept in memory");
    if (heard.cache.writable() || heard.warnings.size() != 1) return std::string("not one warning");
    return heard.warnings[0];
  });
  EXPECT_THAT(said, AllOf(HasSubstr(directory_), HasSubstr("Permission denied"), HasSubstr("new times are not stored"),
                          HasSubstr("select.cache_dir")));
}

TEST_F(SharedTuning, AnUnreadableLockIsNamedWithTheReason) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  std::ofstream(At("lock")) << "";
  chmod(At("lock").c_str(), 0600);
  EXPECT_THAT(AsAnother([&] {
                Heard heard(directory_);
                heard.cache.Add(kKey, Sample());
                return heard.warnings.size() == 1 ? heard.warnings[0] : std::string();
              }),
              AllOf(HasSubstr(At("lock")), HasSubstr("Permission denied"), HasSubstr("let all users of the directory")));
}

TEST_F(SharedTuning, SymbolicLinksAndPipesAreNotOpened) {
  TuningCache(directory_).Add(kOther, Sample());
  const std::string target = At("somebody's file");
  std::ofstream(target) << "precious";
  auto bytes = [&] {
    std::ifstream in(target);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::filesystem::create_symlink(target, Entry(kKey));
  TuningCache(directory_).Add(kKey, Sample());
  EXPECT_EQ(bytes(), "precious");
  EXPECT_FALSE(std::filesystem::is_symlink(Entry(kKey)));
  EXPECT_TRUE(TuningCache(directory_).Find(kKey).has_value());

  std::filesystem::remove(At("lock"));
  std::filesystem::create_symlink("made", At("lock"));
  Heard linked(directory_);
  linked.cache.Add(kThird, Sample());
  EXPECT_THAT(linked.warnings, ElementsAre(AllOf(HasSubstr(At("lock")), HasSubstr("remove that link"))));
  EXPECT_FALSE(std::filesystem::exists(At("made")));
  EXPECT_TRUE(linked.cache.Find(kOther).has_value());

  std::filesystem::remove(At("lock"));
  ASSERT_EQ(mkfifo(At("lock").c_str(), 0666), 0);
  Heard piped(directory_);
  piped.cache.Add(kThird, Sample());
  EXPECT_THAT(piped.warnings, ElementsAre(HasSubstr("is not a regular file")));
}

TEST_F(SharedTuning, ADamagedFileIsReportedOnlyOnce) {
  std::ofstream(Entry(kKey)) << "damaged";
  Heard heard(directory_);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(heard.cache.Find(kKey).has_value());
  heard.cache.Add(kKey, Sample());
  EXPECT_TRUE(heard.cache.Find(kKey).has_value());
  EXPECT_THAT(heard.warnings, ElementsAre(HasSubstr("are ignored and measured again")));
}

TEST_F(SharedTuning, AFailedRenameLeavesNoTemporaryFile) {
  std::filesystem::create_directories(Entry(kKey) + "/full");
  Heard heard(directory_);
  heard.cache.Add(kKey, Sample());
  EXPECT_THAT(heard.warnings, Contains(HasSubstr("Is a directory")));
  std::vector<std::string> rest;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path() != At("lock") && entry.path() != Entry(kKey)) rest.push_back(entry.path());
  }
  EXPECT_THAT(rest, IsEmpty());
}

TEST_F(SharedTuning, AWriterKilledAtAnyTimeLeavesACompleteFileAndNoLock) {
  TuningCache(directory_).Add(kKey, Sample());
  for (int round = 0; round < 60; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        TuningCache(directory_)
            .Add(kKey, {.text = "Conv", .timings = {{fmt::format("kernel {}", i % 40), 1.0 * i, false, ""}}});
      }
    }
    usleep(static_cast<useconds_t>(500 + round * 97));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    Heard heard(directory_);
    ASSERT_TRUE(heard.cache.Find(kKey).has_value());
    EXPECT_EQ(heard.cache.Find(kKey)->Find("direct")->us, 12.5);
    heard.cache.Add(kOther, Sample());
    EXPECT_THAT(heard.warnings, IsEmpty());
  }
}

TEST_F(SharedTuning, TemporaryFilesOfKilledWritersAreRemoved) {
  for (const char* name : {".mge-old.tmp", "notes.tmp"}) std::ofstream(At(name)) << "half";
  TuningCache(directory_).Add(kKey, Sample());
  EXPECT_FALSE(std::filesystem::exists(At(".mge-old.tmp")));
  EXPECT_TRUE(std::filesystem::exists(At("notes.tmp")));
}

TEST_F(SharedTuning, WithoutRoomForAFileTimesStayInMemoryAndOldOnesOnDisk) {
  TuningCache(directory_).Add(kKey, Sample());
  const std::string said = AsAnother([&] {
    const rlimit small = {64, 64};
    setrlimit(RLIMIT_FSIZE, &small);
    Heard heard(directory_);
    heard.cache.Add(kOther, Sample());
    heard.cache.Add(kThird, Sample());
    if (!heard.cache.Find(kOther) || !heard.cache.Find(kThird)) return std::string("not kept in memory");
    if (heard.cache.writable() || heard.warnings.size() != 1) return std::string("not one warning");
    return heard.warnings[0];
  });
  EXPECT_THAT(said, AllOf(HasSubstr("new times are not stored"), HasSubstr("ulimit -f")));
  EXPECT_TRUE(TuningCache(directory_).Find(kKey).has_value());
  EXPECT_FALSE(TuningCache(directory_).Find(kOther).has_value());
}

TEST_F(SharedTuning, OnAFullDiskTimesStayInMemoryAndOldOnesOnDisk) {
  // A disk of 16 KiB, seen by the child only.
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("mge", directory_.c_str(), "tmpfs", 0, "size=16k") != 0) {
      _exit(77);
    }
    TuningCache(directory_).Add(kKey, Sample());
    {
      std::ofstream rest(At("rest"));
      for (int i = 0; i < 64 && rest; ++i) rest << std::string(1024, 'x') << std::flush;
    }
    Heard heard(directory_);
    heard.cache.Add(kKey, {.text = "Conv", .timings = {{"tiled", 3, false, ""}}});
    heard.cache.Add(kOther, Sample());
    const bool one_line = heard.warnings.size() == 1 && heard.warnings[0].find("free space") != std::string::npos;
    const bool in_memory = heard.cache.Find(kKey)->Find("tiled")->us == 3 && heard.cache.Find(kOther).has_value();
    const auto on_disk = TuningCache(directory_).Find(kKey);
    const bool intact = on_disk && on_disk->Find("direct")->us == 12.5 && on_disk->Find("tiled")->us == -1;
    _exit((one_line ? 0 : 1) + (in_memory ? 0 : 2) + (intact ? 0 : 4));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs the right to mount a disk";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: not one warning, 2: not in memory, 4: not intact";
}

}  // namespace
}  // namespace mge
