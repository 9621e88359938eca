// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/loader.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "core/base/errors.h"
#include "tests/support/forked_child.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Loads one fake that is alone in its directory. Returns the verdict.
PluginFile VerdictOn(const std::string& kind) {
  PluginFolder folder;
  folder.Add(kind);
  std::unique_ptr<Devices> devices = Load({folder.path()});
  EXPECT_EQ(devices->all().size() > 1, devices->files()[0].verdict == Verdict::kLoaded);
  return devices->files()[0];
}

TEST(Loader, AGoodBackendIsLoadedAndItsDevicesAreListed) {
  PluginFolder folder;
  folder.Add("good");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  ASSERT_EQ(devices->files().size(), 1u);
  EXPECT_EQ(devices->files()[0].verdict, Verdict::kLoaded);
  EXPECT_EQ(devices->files()[0].reason, "");
  ASSERT_EQ(devices->all().size(), 3u);
  EXPECT_EQ(devices->all()[0]->name(), "fake0");
  EXPECT_EQ(devices->all()[0]->description().name, "fake device 0");
  EXPECT_EQ(devices->all()[1]->name(), "fake1");
  EXPECT_EQ(devices->all()[2]->name(), "host");
  EXPECT_EQ(devices->all()[0]->backend().path(), folder.At("mge_good.so"));
}

struct BadCase {
  const char* kind;
  Verdict verdict;
  VerdictCode code;
  const char* reason;
};

class BadBackend : public testing::TestWithParam<BadCase> {};

TEST_P(BadBackend, IsListedWithTheReason) {
  PluginFile file = VerdictOn(GetParam().kind);
  EXPECT_EQ(file.verdict, GetParam().verdict);
  EXPECT_EQ(file.code, GetParam().code) << VerdictCodeName(file.code);
  EXPECT_THAT(file.reason, HasSubstr(GetParam().reason));
  EXPECT_NE(file.fix, "");
  if (file.code == VerdictCode::kBadTable) {
    EXPECT_THAT(file.fix, HasSubstr("mge sdk test"));
  }
  EXPECT_NE(file.name, "");
}

INSTANTIATE_TEST_SUITE_P(
    Loader, BadBackend,
    testing::Values(
        BadCase{"lies", Verdict::kRefused, VerdictCode::kBadTable,
                "its identity note says 'lies' 1.0, its table says 'honest'"},
        BadCase{"wrong_class", Verdict::kRefused, VerdictCode::kBadDevice, "class 'other'; its identity note declares fake"},
        BadCase{"undeclared_gpu", Verdict::kRefused, VerdictCode::kBadDevice, "does not declare the class gpu"},
        BadCase{"unknown_flag", Verdict::kRefused, VerdictCode::kBadDevice, "unknown flags"},
        BadCase{"endless_name", Verdict::kRefused, VerdictCode::kBadDevice,
                "the name of its device 0 is missing or longer than 1048576 bytes"},
        BadCase{"throws", Verdict::kRefused, VerdictCode::kStartFailed, "the fake exploded"},
        BadCase{"fails", Verdict::kRefused, VerdictCode::kStartFailed, "no luck"},
        BadCase{"no_driver", Verdict::kSkipped, VerdictCode::kUnavailable, "libfake.so.1 is not installed"},
        BadCase{"full", Verdict::kSkipped, VerdictCode::kOutOfMemory, "no page-locked memory is left"},
        BadCase{"hungry", Verdict::kSkipped, VerdictCode::kOutOfMemory, "no host memory left"},
        BadCase{"null_slot", Verdict::kRefused, VerdictCode::kBadTable, "slot 'open' of table 'device' is NULL"},
        BadCase{"null_plugin", Verdict::kRefused, VerdictCode::kBadTable, "no table (NULL)"},
        BadCase{"short_plugin", Verdict::kRefused, VerdictCode::kBadTable, "16 bytes (struct_size)"},
        BadCase{"short_table", Verdict::kRefused, VerdictCode::kBadTable, "table 'memory' says 8 bytes"},
        BadCase{"no_entry", Verdict::kRefused, VerdictCode::kNoEntry, "mge_plugin_query"},
        BadCase{"declines", Verdict::kRefused, VerdictCode::kQueryRefused, "only works on Tuesdays"},
        BadCase{"missing_symbol", Verdict::kRefused, VerdictCode::kMissingSymbol, "mge_test_symbol_that_nobody_has"},
        BadCase{"missing_library", Verdict::kRefused, VerdictCode::kMissingLibrary, "libmge_test_gone.so"}),
    [](const auto& info) { return std::string(info.param.kind); });

TEST(Loader, ABadBackendDoesNotAffectTheOthers) {
  PluginFolder folder;
  for (const char* kind : {"throws", "null_slot", "missing_library", "good", "lies", "card"}) folder.Add(kind);
  std::unique_ptr<Devices> devices = Load({folder.path()});
  EXPECT_EQ(devices->all().size(), 5u);
  EXPECT_TRUE(devices->Resolve("fake0").ok());
  EXPECT_TRUE(devices->Resolve("gpu1").ok());
}

TEST(Loader, LackOfMemoryInAStartAffectsOnlyTheDevicesOfThatBackend) {
  for (const char* kind : {"full", "hungry"}) {
    PluginFolder folder;
    folder.Add(kind);
    folder.Add("card");
    std::unique_ptr<Devices> devices = Load({folder.path()});
    EXPECT_TRUE(devices->Resolve("card0").ok());
    EXPECT_EQ(ErrorId(devices->Resolve("fake0").status()), errors::kOutOfMemory.id);
    EXPECT_EQ(ErrorId(devices->Resolve("fake0,none0").status()), errors::kOutOfMemory.id);
    EXPECT_THAT(FormatError(devices->Resolve("fake0").status()), HasSubstr("memory"));
    EXPECT_EQ(ErrorId(devices->Resolve("none0").status()), errors::kDeviceUnusable.id);
  }
}

TEST(Loader, ABackendStopsWithItsLastRuntimeAndMayStartAgain) {
  PluginFolder folder;
  folder.Add("good");
  std::unique_ptr<Devices> first = Load({folder.path()});
  const mge_test_record& record = RecordOf(*first->all()[0]);
  EXPECT_EQ(record.starts, 1);
  std::unique_ptr<Devices> second = Load({folder.path()});
  EXPECT_EQ(record.starts, 1);  // one library, one host table
  ASSERT_TRUE(second->Resolve("fake1").ok());
  EXPECT_EQ(record.opens, 1);
  first.reset();
  EXPECT_EQ(record.stops, 0);
  EXPECT_TRUE(second->Resolve("fake0").ok());
  second.reset();
  EXPECT_EQ(record.stops, 1);
  EXPECT_EQ(record.closes, record.opens);
  std::unique_ptr<Devices> third = Load({folder.path()});
  EXPECT_EQ(record.starts, 2);
  EXPECT_TRUE(third->Resolve("fake0").ok());
}

TEST(Loader, TheHostTableWorksWhileTheBackendRuns) {
  PluginFolder folder;
  folder.Add("good");
  std::vector<std::string> messages;
  DevicesOptions options;
  options.logger = Logger(
      LogLevel::kWarning,
      [](void* state, LogLevel, std::string_view message) {
        static_cast<std::vector<std::string>*>(state)->emplace_back(message);
      },
      &messages);
  options.settings = [](std::string_view backend, std::span<const mge_setting* const> rows) {
    EXPECT_EQ(backend, "good");
    EXPECT_EQ(rows.size(), 1u);
    return std::vector<std::string>{"7"};
  };
  options.core = [](std::string_view key) { return key == "threads" ? std::optional<std::string>("3") : std::nullopt; };
  options.blobs = {folder.At("blobs"), 1 << 20};
  std::unique_ptr<Devices> devices = Load({folder.path()}, std::move(options));
  const mge_host* host = RecordOf(*devices->all()[0]).host;
  ASSERT_EQ(host, devices->all()[0]->host());
  mge_text value = {};
  EXPECT_EQ(host->setting(host->self, 0, &value), MGE_OK);
  EXPECT_EQ(std::string(value.data, value.size), "7");
  EXPECT_EQ(host->setting(host->self, 1, &value), MGE_OUT_OF_RANGE);
  const mge_text threads = {"threads", 7}, unknown = {"thread", 6};
  EXPECT_EQ(host->core_setting(host->self, &threads, &value), MGE_OK);
  EXPECT_EQ(std::string(value.data, value.size), "3");
  EXPECT_EQ(host->core_setting(host->self, &unknown, &value), MGE_NOT_FOUND);
  std::string blob;
  auto found = [](void* self, const void* data, uint64_t size) {
    static_cast<std::string*>(self)->assign(static_cast<const char*>(data), size);
  };
  EXPECT_EQ(host->blob_load(host->self, "key", 3, &blob, found), MGE_NOT_FOUND);
  EXPECT_EQ(host->blob_store(host->self, "key", 3, "data", 4), MGE_OK);
  EXPECT_EQ(host->blob_load(host->self, "key", 3, &blob, found), MGE_OK);
  EXPECT_EQ(blob, "data");
  EXPECT_EQ(host->blob_load(host->self, nullptr, 0, &blob, found), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(host->blob_store(host->self, "key", 3, std::string(2 << 20, 'x').data(), 2 << 20), MGE_RESOURCE_EXHAUSTED);
  host->log(host->self, MGE_LOG_WARNING, "hot\x1b[31m", 8);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0], AllOf(HasSubstr("backend good: hot"), Not(HasSubstr("\x1b"))));
  mge_error error;
  EXPECT_EQ(host->fail(host->self, &error, MGE_ABORTED, "why", 3), MGE_ABORTED);
  EXPECT_EQ(error.text, "why");
  EXPECT_EQ(host->fail(host->self, nullptr, MGE_ABORTED, "why", 3), MGE_ABORTED);
  EXPECT_EQ(host->extension(host->self, "org.example.none", 1), nullptr);
  EXPECT_EQ(host->extension(host->self, MGE_LOG_LEVEL_EXTENSION, 2), nullptr);  // a newer version than the host has
  auto* level = static_cast<const mge_log_level_api*>(host->extension(host->self, MGE_LOG_LEVEL_EXTENSION, 1));
  ASSERT_NE(level, nullptr);
  EXPECT_EQ(level->least(level->self), MGE_LOG_WARNING);
  EXPECT_EQ(host->thread_count(host->self), 1u);
  uint64_t sum = 0;
  host->parallel_for(
      host->self, 5, [](void* c, uint64_t i) { *static_cast<uint64_t*>(c) += i; }, &sum);
  EXPECT_EQ(sum, 10u);
  uint64_t before = host->clock_ns(host->self);
  EXPECT_GE(host->clock_ns(host->self), before);
}

TEST(Loader, ABadSettingIsNamedAndTheBackendIsNotStarted) {
  PluginFolder folder;
  folder.Add("good");
  DevicesOptions options;
  options.settings = [](std::string_view, std::span<const mge_setting* const>) -> absl::StatusOr<std::vector<std::string>> {
    return Fail(errors::kBadSetting, "good.level = 11 is outside of 0..9",
                {.where = "MGE_GOOD_LEVEL", .fix = "set it to 0..9"});
  };
  std::unique_ptr<Devices> devices = Load({folder.path()}, std::move(options));
  EXPECT_EQ(devices->files()[0].code, VerdictCode::kBadSetting);
  EXPECT_THAT(devices->files()[0].reason, AllOf(HasSubstr("outside of 0..9"), HasSubstr("MGE_GOOD_LEVEL")));
  EXPECT_EQ(devices->files()[0].fix, "set it to 0..9");
}

TEST(Loader, AFileThatChangedSinceDiscoveryIsRefused) {
  PluginFolder folder;
  folder.Add("good");
  std::vector<PluginDirectory> directories = {{folder.path(), ""}};
  Discovery discovery = DiscoverPlugins(directories, MGE_ISA_KNOWN_BITS);
  ASSERT_EQ(discovery.accepted.size(), 1u);
  std::filesystem::remove(folder.At("mge_good.so"));
  folder.Add("card", "mge_good.so");
  PluginFile file;
  EXPECT_EQ(LoadBackend(discovery.accepted[0], {}, file), nullptr);
  EXPECT_EQ(file.code, VerdictCode::kUntrusted);
}

TEST(Loader, AnIdenticalRewrittenFileUsesTheLoadedLibrary) {
  PluginFolder folder;
  folder.Add("good");
  std::unique_ptr<Devices> first = Load({folder.path()});
  const mge_test_record& record = RecordOf(*first->all()[0]);
  std::filesystem::last_write_time(folder.At("mge_good.so"), std::filesystem::file_time_type::clock::now());
  std::unique_ptr<Devices> second = Load({folder.path()});
  EXPECT_EQ(second->files()[0].verdict, Verdict::kLoaded) << second->files()[0].reason;
  std::filesystem::remove(folder.At("mge_good.so"));
  folder.Add("good");
  std::unique_ptr<Devices> third = Load({folder.path()});
  EXPECT_EQ(third->files()[0].verdict, Verdict::kLoaded) << third->files()[0].reason;
  EXPECT_EQ(record.starts, 1);
  second.reset();
  first.reset();
  EXPECT_EQ(record.stops, 0);
  EXPECT_TRUE(third->Resolve("fake1").ok());
}

TEST(Loader, AnotherBuildAtTheSamePathIsRefusedUntilTheProcessRestarts) {
  PluginFolder folder;
  folder.Add("good");
  std::unique_ptr<Devices> first = Load({folder.path()});
  std::filesystem::remove(folder.At("mge_good.so"));
  folder.Add("better", "mge_good.so");
  for (bool running : {true, false}) {
    if (!running) first.reset();
    PluginFile file = Load({folder.path()})->files()[0];
    EXPECT_EQ(file.code, VerdictCode::kOlderInUse) << file.reason;
    EXPECT_EQ(file.verdict, Verdict::kRefused);
    EXPECT_THAT(file.fix, HasSubstr("restart the process"));
  }
}

TEST(Loader, ASlowStartOrStopDoesNotBlockOtherBackends) {
  PluginFolder slow, good;
  slow.Add("slow");
  good.Add("good");
  std::unique_ptr<Devices> held = Load({good.path()});
  std::atomic<bool> loading{true};
  std::thread other([&] {
    (void)Load({slow.path()});  // starts the backend and stops it
    loading = false;
  });
  int times = 0;
  while (loading) {
    EXPECT_EQ(Load({good.path()})->files()[0].verdict, Verdict::kLoaded);
    ++times;
  }
  other.join();
  EXPECT_GT(times, 2);
}

TEST(Loader, AllThreadsThatWaitForAStoppingBackendGetItAfterItsRestart) {
  PluginFolder folder;
  folder.Add("slow");
  std::unique_ptr<Devices> first = Load({folder.path()});
  std::vector<std::unique_ptr<Devices>> made(4);
  std::vector<std::thread> threads;
  threads.emplace_back([&] { first.reset(); });
  for (auto& m : made) threads.emplace_back([&] { m = Load({folder.path()}); });
  for (std::thread& t : threads) t.join();  // all four stay alive, so none may wait for the end of another
  for (auto& m : made) EXPECT_EQ(m->files()[0].verdict, Verdict::kLoaded);
}

TEST(Loader, ABackendBuiltWithDefaultVisibilityExportsNothingOfTheSdk) {
  PluginFolder folder;
  folder.Add("visible");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  EXPECT_EQ(devices->files()[0].verdict, Verdict::kLoaded);
  // The warning lists mangled names; "3mge" is the SDK's namespace. Two backends that export an object would share it.
  EXPECT_THAT(devices->files()[0].warning, Not(HasSubstr("3mge")));
}

TEST(Loader, AForkedChildDoesNotCallTheDriver) {
  PluginFolder folder;
  folder.Add("good");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  ASSERT_TRUE(devices->Resolve("fake0").ok());
  pid_t child = fork();
  if (child == 0) {
    const mge_test_record& record = RecordOf(*devices->all()[0]);
    bool forked = ErrorId(devices->Resolve("fake0").status()) == errors::kForked.id;
    bool host = devices->Resolve("host").ok();
    devices.reset();
    _exit(forked && host && record.stops == 0 && record.closes == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(devices->Resolve("fake1").ok());
}

TEST(Loader, AForkedChildStartsABackendAgainForItsOwnRuntimes) {
  PluginFolder folder;
  folder.Add("good");
  std::unique_ptr<Devices> parents = Load({folder.path()});
  ASSERT_TRUE(parents->Resolve("fake0").ok());
  EXPECT_EQ(InChild([&] {
              std::unique_ptr<Devices> own = Load({folder.path()}), another = Load({folder.path()});
              bool good = own->Resolve("fake0").ok() && another->Resolve("fake0").ok();
              good = good && ErrorId(parents->Resolve("fake0").status()) == errors::kForked.id;
              parents.reset();
              return good && own->Resolve("fake1").ok();
            }),
            0);
  EXPECT_TRUE(parents->Resolve("fake1").ok());
}

TEST(Loader, AForkedChildDoesNotWaitForABackendThatItsParentWasStarting) {
#if defined(__SANITIZE_THREAD__)
  // A child may reuse the stack of a thread of its parent, and so its pthread_t. The sanitizer still has the parent's thread.
  GTEST_SKIP() << "the thread sanitizer ends a forked child that gives a thread the id of a parent's thread";
#endif
  PluginFolder folder;
  folder.Add("slow");
  folder.Add("card");
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) (void)Load({folder.path()});
  });
  for (int i = 0; i < 12 && !HasFailure(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(37));
    EXPECT_EQ(InChild([&] {
                std::unique_ptr<Devices> devices = Load({folder.path()});
                PluginFile slow = FileNamed(devices->files(), "mge_slow.so");
                return slow.verdict == Verdict::kLoaded ||
                       (slow.code == VerdictCode::kStartFailed && slow.reason.find("was forked while") != std::string::npos);
              }),
              0);
  }
  over = true;
  other.join();
}

// If two backends have one name, the first that loads is used.
TEST(Loader, AFailedFileDoesNotBlockAnotherBackendOfItsName) {
  for (const char* kind : {"no_good", "lies"}) {
    PluginFolder first, second, third;
    first.Write("mge_a.so", WithNote(ReadAll(FakeFile(kind)), [](mge_note& n) { std::strcpy(n.name, "good"); }));
    second.Add("better", "mge_b.so");
    third.Add("good", "mge_c.so");
    std::unique_ptr<Devices> devices = Load({first.path(), second.path(), third.path()});
    ASSERT_EQ(devices->files().size(), 3u);
    const PluginFile bad = devices->files()[0], loaded = devices->files()[1], late = devices->files()[2];
    EXPECT_EQ(bad.verdict, Verdict::kRefused);
    EXPECT_THAT(bad.reason, testing::AnyOf(HasSubstr("the fake exploded"), HasSubstr("its table says 'honest'")));
    EXPECT_EQ(loaded.path, second.At("mge_b.so"));
    EXPECT_EQ(loaded.verdict, Verdict::kLoaded) << loaded.reason;
    EXPECT_EQ(late.verdict, Verdict::kSkipped);
    EXPECT_EQ(late.code, VerdictCode::kDuplicateName);
    EXPECT_THAT(late.reason, HasSubstr(second.At("mge_b.so")));
    EXPECT_TRUE(devices->Resolve("fake0").ok());
  }
}

TEST(Loader, LoadingAndUnloadingRepeatedlyLeaksNothing) {
  PluginFolder folder;
  for (const char* kind : {"good", "card", "throws", "null_slot", "missing_library"}) folder.Add(kind);
  auto count = [](const char* path) {
    auto entries = std::filesystem::directory_iterator(path);
    return std::distance(begin(entries), end(entries));
  };
  auto maps = [] {
    std::string text = ReadAll("/proc/self/maps");
    size_t libraries = 0;
    for (size_t at = 0; (at = text.find("mge_plugins_", at)) != std::string::npos; ++at) ++libraries;
    return libraries;
  };
  (void)Load({folder.path()})->Resolve("fake0");
  auto files = count("/proc/self/fd");
  size_t mapped = maps();
  for (int i = 0; i < 1000; ++i) (void)Load({folder.path()})->Resolve("fake0");
  EXPECT_EQ(count("/proc/self/fd"), files);
  EXPECT_EQ(maps(), mapped);
}

TEST(Verdict, CodesHaveStableNames) {
  EXPECT_EQ(VerdictCodeName(VerdictCode::kOk), "ok");
  EXPECT_EQ(VerdictCodeName(VerdictCode::kAbiMismatch), "abi_mismatch");
  EXPECT_EQ(VerdictCodeName(VerdictCode::kMissingLibrary), "missing_library");
  EXPECT_EQ(VerdictCodeName(VerdictCode::kBadDevice), "bad_device");
  EXPECT_EQ(VerdictName(Verdict::kSkipped), "skipped");
}

}  // namespace
}  // namespace mge
