// SPDX-License-Identifier: Apache-2.0
// The conformance kit: it passes correct backends, names the faults of others, and survives crashes of a backend.
#include "core/conform/conform.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "core/conform/allocations.h"
#include "core/conform/cases.h"
#include "core/conform/leak_check.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/conform/reports.h"

namespace mge::conform {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHeapIsSeen = false;  // the sanitizer replaces malloc
#else
constexpr bool kHeapIsSeen = true;
#endif

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Conform, PassesTheBackendsOfThisProject) {
  for (const char* name : {"null", "cpu", "virtual"}) {
    if (!std::filesystem::exists(Plugin(name))) continue;
    // The kernels of virtual are the reference evaluators. The long form runs the whole kit on it, too.
    const bool quick = std::string_view(name) == "virtual" && !std::getenv("MGE_TEST_WHOLE_KIT");
    absl::StatusOr<Report> report = CheckBackend(Plugin(name), {.quick = quick});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->passed()) << name << "\n" << Findings(*report);
    EXPECT_GT(report->Count(Outcome::kPassed), 30u) << name;
    for (const CheckResult& c : report->checks) {
      EXPECT_TRUE(c.outcome != Outcome::kUnsupported || !c.reason.empty()) << c.name << " is unsupported without a reason";
    }
  }
}

class OnDemand : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(Plugin("virtual"))) GTEST_SKIP() << "the backend virtual is not built";
  }
  absl::StatusOr<Report> CheckWith(std::vector<Assignment> settings) {
    return CheckOf(Sources{.command_line = std::move(settings)});
  }
  absl::StatusOr<Report> CheckOf(Sources given) {
    Options options = {.quick = true, .only = {"abi.note", "device.", "queue.peers"}, .given = std::move(given)};
    options.warn = [this](const std::string& text) { warnings_.push_back(text); };
    return CheckBackend(Plugin("virtual"), options);
  }
  std::vector<std::string> warnings_;
};

TEST_F(OnDemand, TheKitAsksForTwoDevicesAndReportsIt) {
  absl::StatusOr<Report> report = CheckWith({});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->Result(), "passed");
  EXPECT_EQ(Named(*report, "queue.peers").outcome, Outcome::kPassed);
  EXPECT_THAT(ReportMarkdown(*report), HasSubstr("- the number of devices is a setting: tested with virtual.devices=2\n"
                                                 "- device 0"));
}

TEST_F(OnDemand, TheUsersNumberOfDevicesIsUsed) {
  absl::StatusOr<Report> report = CheckWith({{"virtual.devices", "1"}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(Named(*report, "queue.peers").outcome, Outcome::kUnsupported);
  EXPECT_EQ(report->Fact("on_demand"), "");
}

TEST_F(OnDemand, WithoutADeviceTheResultIsIncomplete) {
  absl::StatusOr<Report> report = CheckWith({{"virtual.devices", "0"}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->Result(), "incomplete");
  EXPECT_FALSE(report->passed());
  EXPECT_THAT(ReportMarkdown(*report), testing::StartsWith("# virtual: incomplete\n\n**There was no device to test**: "
                                                           "it lists none; --set virtual.devices=2 requests two."));
  EXPECT_THAT(ReportJson(*report), HasSubstr("\"result\": \"incomplete\""));
  report = CheckWith({{"virtual.devices", "1"}, {"virtual.fault", "paste@1=fail"}});
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(ReportMarkdown(*report), HasSubstr("**There was no device to test**: device 0: virtual.fault: "));
}

TEST(Conform, ABackendThatCannotStartHereIsNotPassed) {
  absl::StatusOr<Report> report =
      CheckBackend(MGE_BINARY_DIR "/tests/mutants/absent_here.so", {.quick = true, .only = {"abi.note", "device."}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->Result(), "incomplete");
  EXPECT_THAT(report->Fact("no_device"), HasSubstr("the driver is not installed"));
}

TEST(Conform, AWrappedPoolOfTheHostPasses) {
  absl::StatusOr<Report> report =
      CheckBackend(MGE_BINARY_DIR "/tests/engine_fakes/tuner_wraps.so", {.only = {"pool.", "reserve."}});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->passed()) << Findings(*report);
  EXPECT_GE(report->Count(Outcome::kPassed), 9u);
}

// The queues of the template work in the calling thread.
TEST(Conform, QueuesThatWorkInTheCallingThreadPass) {
  absl::StatusOr<Report> report = CheckBackend(MGE_BINARY_DIR "/tests/template/mge_template.so",
                                               {.only = {"pool.", "fence.", "memory.", "queue.", "profile."}});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->passed()) << Findings(*report);
  EXPECT_EQ(Named(*report, "fence.wait").outcome, Outcome::kPassed);
  EXPECT_THAT(Named(*report, "pool.last_use").reason, HasSubstr("its queues are never busy"));
}

TEST(Conform, AFaultThatPreventsAllChecksIsOneFinding) {
  for (auto [mutant, check] : {std::pair("start_fails", "life.start"), std::pair("start_crashes", "life.start"),
                               std::pair("opens_nothing", "device.open_close"), std::pair("hangs_at_stop", "life.start")}) {
    absl::StatusOr<Report> report =
        CheckBackend(std::string(MGE_BINARY_DIR) + "/tests/mutants/" + mutant + ".so", {.quick = true, .seconds = 5});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->Result(), "failed");
    EXPECT_GE(report->Count(Outcome::kPassed), 5u) << mutant;  // the file and its table
    for (const CheckResult& c : report->checks) {
      EXPECT_EQ(c.outcome == Outcome::kFailed, c.name == check) << mutant << " " << c.name;
      if (c.name == check) {
        EXPECT_EQ(c.found, 1u) << mutant;
      }
      if (c.name == "queue.order") {
        EXPECT_THAT(c.reason, AllOf(HasSubstr("not tried"), HasSubstr(check)));
      }
    }
  }
}

TEST(Conform, NamesBackendsThatThrow) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "no exception gets through a sanitizer's dlopen";
#endif
  for (auto [mutant, where] : {std::pair("start_throws", "starting"), std::pair("load_throws", "opening the library")}) {
    absl::StatusOr<Report> report =
        CheckBackend(fmt::format(MGE_BINARY_DIR "/tests/mutants/{}.so", mutant), {.quick = true, .only = {"life."}});
    ASSERT_TRUE(report.ok());
    EXPECT_THAT(Findings(*report),
                HasSubstr(fmt::format("{}: threw an exception, which the contract forbids: no driver", where)));
  }
}

TEST_F(OnDemand, SettingsComeFromTheCommandLineEnvironmentAndFiles) {
  absl::StatusOr<Report> report = CheckOf(Sources{.environment = {{{"MGE_VIRTUAL_DEVICES", "1"}}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Named(*report, "queue.peers").outcome, Outcome::kUnsupported);
  EXPECT_EQ(report->Fact("on_demand"), "");
  report = CheckOf(Sources{.command_line = {{"MGE_VIRTUAL_DEVICES", "3"}}, .environment = {{{"MGE_VIRTUAL_DEVICES", "1"}}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Named(*report, "queue.peers").outcome, Outcome::kPassed);
  std::string path = testing::TempDir() + "/kit.toml";
  std::ofstream(path) << "[virtual]\ndevices = 1\n";
  report = CheckOf(Sources{.config_files = {path}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Named(*report, "queue.peers").outcome, Outcome::kUnsupported);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(OnDemand, AnUnknownSettingIsReportedOnceAndNothingIsTested) {
  absl::Status status = CheckWith({{"virtual.device", "1"}}).status();
  EXPECT_EQ(KindOf(status), ErrorKind::kUsage);
  EXPECT_THAT(FormatError(status),
              HasSubstr("no setting \"virtual.device\". Did you mean \"virtual.devices\"? (command line)"));
  EXPECT_THAT(FormatError(status), HasSubstr("it declares virtual.devices, "));
  EXPECT_EQ(KindOf(CheckWith({{"threads", "1"}}).status()), ErrorKind::kUsage);
  EXPECT_EQ(KindOf(CheckWith({{"virtual.devices", "many"}}).status()), ErrorKind::kUsage);
  EXPECT_EQ(KindOf(CheckOf(Sources{.environment = {{{"MGE_VIRTUAL_DEVICES", "many"}}}}).status()), ErrorKind::kUsage);
  EXPECT_THAT(warnings_, IsEmpty());

  Sources misspelt = {.environment = {{{"MGE_VIRTUAL_DEVICE", "1"}, {"MGE_CPU_ISA", "x"}}}};
  EXPECT_TRUE(CheckOf(misspelt).ok());
  EXPECT_THAT(warnings_, testing::ElementsAre(
                             HasSubstr("the variable \"MGE_VIRTUAL_DEVICE\" is unknown and has no effect. Did you mean "
                                       "\"MGE_VIRTUAL_DEVICES\"?")));
  misspelt.environment.variables.emplace_back("MGE_ENV_STRICT", "1");
  EXPECT_EQ(KindOf(CheckOf(misspelt).status()), ErrorKind::kUsage);
}

TEST(Conform, HasACaseForEveryOperatorThatABackendMaySee) {
  for (const OpDef* def : CheckableOps()) {
    int cases = 0;
    std::string last;
    for (DType dtype : TypesOf(*def)) {
      for (const std::string& spec : SpecsFor(*def)) {
        absl::StatusOr<Case> c = MakeCase(*def, dtype, spec);
        cases += c.ok();
        if (!c.ok()) last = std::string(c.status().message());
      }
    }
    EXPECT_GT(cases, 0) << def->name << ": " << last;
  }
}

TEST(Conform, RefusesFilesThatAreNotABackend) {
  std::string path = testing::TempDir() + "/text.so";
  std::ofstream(path) << "this is no library";
  absl::StatusOr<Report> report = CheckBackend(path, {.quick = true});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->passed());
  EXPECT_EQ(Named(*report, "abi.note").outcome, Outcome::kFailed);
  EXPECT_EQ(Named(*report, "kernel.numerics").outcome, Outcome::kUnsupported);
  EXPECT_THAT(ReportMarkdown(*report), HasSubstr("**No kernel was tested**: the table cannot be read, see abi.table.\n"));
  absl::Status status = CheckBackend("/no/such/file.so", {}).status();
  EXPECT_EQ(KindOf(status), ErrorKind::kIo);
  EXPECT_THAT(FormatError(status), HasSubstr("No such file or directory"));
}

TEST(Conform, ChecksAndOperatorsOfOnlyAreAnIntersection) {
  const std::string file = MGE_BINARY_DIR "/tests/mutants/none.so";
  absl::StatusOr<Report> report = CheckBackend(file, {.quick = true, .only = {"kernel.bounds", "Relu"}});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->checks.size(), 1u);
  EXPECT_EQ(report->checks[0].name, "kernel.bounds");
  EXPECT_EQ(report->checks[0].outcome, Outcome::kPassed);
  for (const auto& [op, name] : report->cases) EXPECT_EQ(op, "Relu") << name;
  const absl::Status status = CheckBackend(file, {.only = {"queue.order", "Relu"}}).status();
  EXPECT_EQ(KindOf(status), ErrorKind::kUsage);
  EXPECT_THAT(FormatError(status), HasSubstr("no check that it names runs operator by operator"));
}

TEST(Conform, RefusesNamesOfChecksThatDoNotExist) {
  auto said = [](std::vector<std::string> only, bool quick) {
    return FormatError(CheckBackend(Plugin("null"), {.quick = quick, .only = std::move(only)}).status());
  };
  EXPECT_THAT(said({"abi.note", "nope"}, true),
              HasSubstr("--only \"nope\": no check and no operator of --quick has a name"));
  EXPECT_THAT(said({"queue.oder"}, true), HasSubstr("Did you mean \"queue.order\"?"));
  EXPECT_THAT(said({"memroy"}, true), HasSubstr("Did you mean \"memory\"?"));
  EXPECT_THAT(said({"Sofmax"}, false), HasSubstr("Did you mean \"Softmax\"?"));
  EXPECT_THAT(said({"nope"}, true), HasSubstr("or a check: abi, device, memory, "));
}

// ---------------------------------------------------------------- expected failures

class ExpectedFailures : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    std::string path = testing::TempDir() + "/expected.txt";
    std::ofstream(path) << text;
    return path;
  }
  absl::StatusOr<Report> CheckMutant(const std::string& list) {
    return CheckBackend(
        std::string(MGE_BINARY_DIR) + "/tests/mutants/copy_too_short.so",
        {.quick = true, .expected_failures = Write(list), .only = {"queue.copies", "queue.order", "fence.timeout"}});
  }
};

TEST_F(ExpectedFailures, DoNotCountAsFailures) {
  absl::StatusOr<Report> report =
      CheckMutant("# a comment\nqueue.copies | | the driver drops a byte\nqueue.order | | the same\n");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Named(*report, "queue.copies").outcome, Outcome::kExpectedFailure);
  EXPECT_TRUE(report->passed()) << Findings(*report);
}

TEST_F(ExpectedFailures, MustNotPass) {
  absl::StatusOr<Report> report = CheckMutant("queue.copies | | x\nqueue.order | | x\nfence.timeout | | it never worked\n");
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->passed());
  EXPECT_THAT(report->unexpected_passes, testing::ElementsAre("fence.timeout | | it never worked"));
}

TEST_F(ExpectedFailures, ExcuseOnlyTheNamedChecks) {
  absl::StatusOr<Report> report = CheckMutant("queue.copies | some other place | x\nqueue.order | | x\n");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(Named(*report, "queue.copies").outcome, Outcome::kFailed);
}

TEST_F(ExpectedFailures, OfACheckThatMayFailAreAcceptedLikeItsPassing) {
  Options options = {
      .quick = true, .may_fail = {"queue.copies", "fence.timeout"}, .only = {"queue.copies", "fence.timeout"}};
  absl::StatusOr<Report> report = CheckBackend(MGE_BINARY_DIR "/tests/mutants/copy_too_short.so", options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->passed()) << Findings(*report);
  EXPECT_EQ(Named(*report, "queue.copies").outcome, Outcome::kExpectedFailure);
  EXPECT_THAT(ReportMarkdown(*report), AllOf(HasSubstr("- may fail: queue.copies (failed)\n"),
                                             HasSubstr("- may fail: fence.timeout (did not fail)\n")));
  options.may_fail = {"queue.copy"};
  EXPECT_THAT(FormatError(CheckBackend(MGE_BINARY_DIR "/tests/mutants/none.so", options).status()),
              HasSubstr("--may-fail \"queue.copy\": no check has a name that begins so."));
}

TEST_F(ExpectedFailures, AreReadFromATextFile) {
  std::string fifo = testing::TempDir() + "/expected.fifo";
  unlink(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {testing::TempDir(), fifo, std::string("/dev/null"), std::string("/no/such/list")})
    EXPECT_EQ(KindOf(ReadExpected(path).status()), ErrorKind::kIo) << path;
  EXPECT_TRUE(ReadExpected(Write("")).ok());
}

TEST_F(ExpectedFailures, AreReadStrictly) {
  EXPECT_THAT(ReadExpected(Write("queue.copies | x\n")).status().ToString(), HasSubstr("three parts"));
  EXPECT_THAT(ReadExpected(Write("queue.copy | | x\n")).status().ToString(), HasSubstr("there is no check 'queue.copy'"));
  EXPECT_THAT(ReadExpected(Write("queue.copies | |\n")).status().ToString(), HasSubstr("no reason"));
}

// ---------------------------------------------------------------- leaks

Leaks Lost(const std::function<void(int)>& work, const std::function<int64_t()>& device_used) {
  int round = 0;
  return MeasureLeaks([&] { work(round++); }, device_used);
}

TEST(Leaks, CountMemoryThatEveryRoundTakes) {
  int64_t used = 0;
  Leaks lost = Lost([&](int) { used += 300; }, [&] { return used; });
  EXPECT_EQ(lost.device, 300);
  EXPECT_EQ(lost.heap, 0);
  std::vector<std::unique_ptr<char[]>> kept;
  kept.reserve(1000);
  lost = Lost([&](int) { kept.push_back(std::make_unique<char[]>(1000)); }, [] { return 0; });
  if (kHeapIsSeen) {
    EXPECT_NEAR(static_cast<double>(lost.heap), 1000, 100);  // the thread's own memory varies
  }
}

TEST(Leaks, DoNotCountACacheThatStopsGrowing) {
  int64_t used = 0;
  std::vector<std::unique_ptr<char[]>> kept;
  kept.reserve(1000);
  Leaks lost = Lost(
      [&](int round) {
        if (round < 40) kept.push_back(std::make_unique<char[]>(1000)), used += 300;
      },
      [&] { return used; });
  EXPECT_EQ(lost.device, 0);
  EXPECT_EQ(lost.heap, 0);
}

TEST(Leaks, CountMappedMemoryOutsideOfTheHeap) {
  std::vector<void*> kept;
  Leaks lost = Lost([&](int) { kept.push_back(mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); },
                    [] { return 0; });
  for (void* pages : kept) munmap(pages, 8192);
  EXPECT_EQ(lost.heap, 0);
  if (kHeapIsSeen) {
    EXPECT_EQ(lost.mapped, 8192);
  }
}

TEST(Leaks, DoNotCountMemoryThatOthersTakeMeanwhile) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  Leaks lost = Lost([](int) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); },
                    [&] { return (Clock::now() - begin).count(); });
  EXPECT_EQ(lost.device, 0);
}

TEST(Leaks, DoNotCountBlocksThatADriverKeepsAtRandom) {
  std::minstd_rand random(7);
  int64_t used = 0;
  for (int i = 0; i < 20; ++i) {
    Leaks lost = Lost([&](int) { used += random() % 3 == 0 ? 1 + random() % 5000 : 0; }, [&] { return used; });
    EXPECT_EQ(lost.device, 0) << i;
  }
}

TEST(Leaks, NameTheSlotThatLosesMemory) {
  int64_t used = 0;
  auto adds = [&](int64_t bytes) { return [&used, bytes] { used += bytes; }; };
  EXPECT_EQ(FindLeak("round", {{"prepare", adds(0)}, {"bind", adds(64)}, {"launch", adds(64)}}, [&] { return used; }),
            "every round loses 64 bytes of the device's memory, in bind");
}

// ---------------------------------------------------------------- mutants

struct Mutant {
  std::string name;
  std::vector<std::string> checks;
};

std::vector<Mutant> Mutants() {
  std::vector<Mutant> out;
  std::ifstream file(MGE_TEST_DIR "/mutants/mutants.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Mutant m;
    std::string word;
    words >> m.name >> word;
    while (words >> word && word != "|") m.checks.push_back(word);
    out.push_back(std::move(m));
  }
  return out;
}

// Returns "" if one of the mutant's checks fails, as it must; otherwise the findings of the report.
std::string WhyMissed(const Mutant& m, double seconds) {
  absl::StatusOr<Report> report =
      CheckBackend(std::string(MGE_BINARY_DIR) + "/tests/mutants/" + m.name + ".so", {.quick = true, .seconds = seconds});
  if (!report.ok()) return report.status().ToString();
  for (const std::string& check : m.checks) {
    if (const size_t at = check.find('@'); at != check.npos) {
      const std::string of_all = check.substr(0, at), op = check.substr(at + 1);
      absl::StatusOr<Report> all = CheckBackend(report->path, {.seconds = 120, .only = {of_all, op}});
      if (all.ok() && Named(*all, of_all).outcome == Outcome::kFailed) return {};
      continue;
    }
    if (Named(*report, check).outcome == Outcome::kFailed) return {};
  }
  return m.name + " is not named; found is:\n" + Findings(*report);
}

std::vector<std::string> Right() {
  std::vector<std::string> names = {"none", "cancels_by_fence", "works_later", "has_driver"};
  if (kHeapIsSeen) names.push_back("links_statically");  // only the sanitizer's library can catch what its `new` throws
  return names;
}

TEST(Mutants, WithoutAFaultPass) {
  for (const std::string& name : Right()) {
    absl::StatusOr<Report> report = CheckBackend(std::string(MGE_BINARY_DIR) + "/tests/mutants/" + name + ".so", {});
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->passed()) << name << "\n" << Findings(*report);
    EXPECT_GT(report->Count(Outcome::kPassed), 55u) << name;  // its backend offers almost every optional part
  }
}

// The kit sees allocations whether the backend uses the program's operator new or its own over malloc.
TEST(Mutants, AreTestedWhileAllocationsFail) {
  if (!kHeapIsSeen) GTEST_SKIP() << "a sanitizer replaces malloc";
  for (const std::string& name : Right()) {
    absl::StatusOr<Report> report =
        CheckBackend(std::string(MGE_BINARY_DIR) + "/tests/mutants/" + name + ".so",
                     {.quick = true, .only = {"device.", "pool.", "queue.", "kernel.allocations"}});
    ASSERT_TRUE(report.ok());
    for (const char* family : {"device", "pool", "queue", "kernel"}) {
      const CheckResult& c = Named(*report, std::string(family) + ".allocations");
      EXPECT_EQ(c.outcome, Outcome::kPassed) << name << " " << c.name << " " << c.reason;
    }
  }
}

TEST(Mutants, ASlowStartGetsEnoughTimeForTheChecksThatRestartIt) {
  Options options = {.quick = true, .seconds = 2, .only = {"life."}};
  absl::StatusOr<Report> report = CheckBackend(std::string(MGE_BINARY_DIR) + "/tests/mutants/starts_slowly.so", options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->passed()) << Findings(*report);
  EXPECT_EQ(report->Count(Outcome::kPassed), 6u);
}

// Wrong blame is a defect like a miss: the verdict must not depend on a driver's luck.
TEST(Mutants, ARightBackendOverANoisyDriverPassesEveryTime) {
  const int rounds = std::getenv("MGE_TEST_WHOLE_KIT") ? 20 : 4;
  for (int i = 0; i < rounds; ++i) {
    for (std::vector<std::string> only : {std::vector<std::string>{"life.leaks", "device.allocations"}, {"Relu"}}) {
      absl::StatusOr<Report> report =
          CheckBackend(MGE_BINARY_DIR "/tests/mutants/noisy_driver.so", {.quick = true, .only = std::move(only)});
      ASSERT_TRUE(report.ok());
      EXPECT_TRUE(report->passed()) << i << "\n" << Findings(*report);
    }
  }
}

// The fault shows only if two runs overlap. On a busy machine they may not, so the test tries again.
TEST(Mutants, ThatShareScratchMemoryAreFound) {
  for (auto [mutant, op] :
       {std::pair("shared_scratch", "MatMul"), {"shared_elements", "Relu"}, {"skips_when_busy", "Relu"}}) {
    auto is_named = [&, file = fmt::format(MGE_BINARY_DIR "/tests/mutants/{}.so", mutant), only = op] {
      absl::StatusOr<Report> report = CheckBackend(file, {.quick = true, .only = {only}});
      return report.ok() && Named(*report, "kernel.concurrent").outcome == Outcome::kFailed;
    };
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(is_named() || is_named()) << mutant << " " << i;
  }
}

TEST(Mutants, OfASampleAreAllFound) {
  std::vector<std::string> sample = {"workspace_lies",   "one_byte_too_far",  "ignores_wait",      "throws_when_stopped",
                                     "fails_when_split", "leaks_reservation", "not_deterministic", "crashes_on_bad_index",
                                     "leaves_memory",    "device_leak",       "assigns_whole",     "malformed_offer",
                                     "fuses_wrong"};
  if (kHeapIsSeen) {
    sample.insert(sample.end(), {"large_kernel_leak", "launch_leak", "crashes_without_memory", "throws_without_memory",
                                 "loses_without_memory", "null_without_memory", "release_needs_memory"});
  }
  size_t checked = 0;
  for (const Mutant& m : Mutants()) {
    if (std::find(sample.begin(), sample.end(), m.name) == sample.end()) continue;
    ++checked;
    const std::string missed = WhyMissed(m, 30);
    if (!missed.empty()) EXPECT_EQ(WhyMissed(m, 60), "");  // a busy machine may leave a check too little time
  }
  EXPECT_EQ(checked, sample.size());
}

// The long form of the test, a separate entry of ctest.
TEST(Mutants, DISABLED_AreNamedButForAFewAtMost) {
  std::vector<Mutant> mutants = Mutants();
  std::erase_if(mutants, [](const Mutant& m) { return m.checks[0] == "-"; });
  ASSERT_GE(mutants.size(), 30u);
  size_t named = 0;
  for (const Mutant& m : mutants) {
    std::string why = WhyMissed(m, 10);
    named += why.empty();
    if (!why.empty()) std::fprintf(stderr, "%s\n", why.c_str());
  }
  EXPECT_GE(named * 30, mutants.size() * 28) << named << " of " << mutants.size();
}

}  // namespace
}  // namespace mge::conform
