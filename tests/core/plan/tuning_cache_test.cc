// SPDX-License-Identifier: Apache-2.0
#include "core/plan/tuning_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace mge {
namespace {

constexpr char kKey[] = "0123456789abcdef0123456789abcdef";

TuningRecord Sample() {
  return {.text = "Conv float32[1,3,8,8]",
          .timings = {{"direct", 12.5, false, ""}, {"tiled", -1, false, "no\tluck\n"}, {"winograd", -1, true, "output 0"}}};
}

TEST(TuningText, ComesBackAsItWas) {
  auto record = ParseTuningText(kKey, TuningText(kKey, Sample()));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->text, Sample().text);
  ASSERT_EQ(record->timings.size(), 3u);
  EXPECT_EQ(record->Find("direct")->us, 12.5);
  EXPECT_EQ(record->Find("tiled")->fault, "no luck ");
  EXPECT_FALSE(record->Find("tiled")->wrong);
  EXPECT_TRUE(record->Find("winograd")->wrong);
  EXPECT_EQ(record->Find("fft"), nullptr);
}

TEST(TuningText, EveryPrefixAndEveryFlippedBitIsFound) {
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

TEST(TuningCache, InMemoryRemembersAndMerges) {
  TuningCache cache;
  EXPECT_FALSE(cache.Find(kKey).has_value());
  cache.Add(kKey, Sample());
  cache.Add(kKey, {.text = "Conv", .timings = {{"tiled", 3, false, ""}}});
  EXPECT_EQ(cache.Find(kKey)->Find("tiled")->us, 3);
  EXPECT_EQ(cache.Find(kKey)->Find("direct")->us, 12.5);
}

TEST(TuningCache, ProcessesThatAddAtOnceLoseNothing) {
  std::string directory = testing::TempDir() + "mge_tuning_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  constexpr int kProcesses = 6, kEach = 8;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    pid_t child = fork();
    if (child == 0) {
      TuningCache cache(directory);
      for (int i = 0; i < kEach; ++i) {
        cache.Add(kKey, {.text = "Conv", .timings = {{"kernel " + std::to_string(p) + "." + std::to_string(i), 1, false, ""}}});
      }
      _exit(cache.directory().empty() ? 1 : 0);
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

}  // namespace
}  // namespace mge
