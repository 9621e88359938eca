// SPDX-License-Identifier: Apache-2.0
// Files and tables that the host checks in its own process: each gets its verdict, the others still load, nothing crashes.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdio>

#include "core/plugin/isa.h"
#include "tests/hostile/hostile.h"
#include "tests/support/forked_child.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Case {
  const char* name;
  std::function<std::string()> bytes;
  Verdict verdict;
  VerdictCode code;
  const char* reason;
};

std::string Noted(const std::function<void(mge_note&)>& edit) { return WithNote(HostileBytes("quiet", 1), edit); }

// Damaged files and their verdicts. A file that is not accepted is never passed to dlopen().
const Case kFiles[] = {
    {"empty", [] { return std::string(); }, Verdict::kRefused, VerdictCode::kNotElf, "empty"},
    {"text", [] { return std::string("#!/bin/sh\necho I am no library\n"); }, Verdict::kRefused, VerdictCode::kNotElf,
     "not an ELF file"},
    {"cut_in_header", [] { return HostileBytes("quiet").substr(0, 40); }, Verdict::kRefused, VerdictCode::kDamaged,
     "byte 40"},
    {"cut_in_the_middle", [] { return HostileBytes("quiet").substr(0, 9000); }, Verdict::kRefused, VerdictCode::kDamaged,
     "truncated"},
    {"other_machine", [] { return WithElfHeader(HostileBytes("quiet"), [](Elf64_Ehdr& h) { h.e_machine = EM_AARCH64; }); },
     Verdict::kRefused, VerdictCode::kWrongMachine, "AArch64"},
    {"core_dump", [] { return WithElfHeader(HostileBytes("quiet"), [](Elf64_Ehdr& h) { h.e_type = ET_CORE; }); },
     Verdict::kRefused, VerdictCode::kNotElf, "core"},
    {"no_note", [] { return ReadAll(MGE_BINARY_DIR "/tests/gone/libmge_test_gone.so"); }, Verdict::kSkipped,
     VerdictCode::kNoNote, "without the identity note"},
    {"note_with_a_bad_name", [] { return Noted([](mge_note& n) { std::strcpy(n.name, "../evil"); }); }, Verdict::kRefused,
     VerdictCode::kBadNote, "name"},
    {"note_without_an_end", [] { return Noted([](mge_note& n) { std::memset(n.version, 'x', sizeof(n.version)); }); },
     Verdict::kRefused, VerdictCode::kBadNote, "version"},
    {"older_major", [] { return Noted([](mge_note& n) { n.abi_major = MGE_ABI_MAJOR - 1; }); }, Verdict::kRefused,
     VerdictCode::kAbiMismatch, "this host supports"},
    {"newer_major", [] { return Noted([](mge_note& n) { n.abi_major = MGE_ABI_MAJOR + 1; }); }, Verdict::kRefused,
     VerdictCode::kAbiMismatch, "this host supports"},
    {"needs_a_newer_minor", [] { return Noted([](mge_note& n) { n.abi_minor_min = MGE_ABI_MINOR + 1; }); },
     Verdict::kRefused, VerdictCode::kAbiMismatch, "or newer; this host supports"},
    {"other_headers", [] { return Noted([](mge_note& n) { n.hash_low ^= 1; }); }, Verdict::kRefused,
     VerdictCode::kAbiMismatch, "before interface 1.0 both must be equal"},
    {"newer_minor", [] { return Noted([](mge_note& n) { n.abi_minor = MGE_ABI_MINOR + 7; }); }, Verdict::kAccepted,
     VerdictCode::kOk, ""},
};

TEST(HostileFiles, GetAVerdictWithoutBeingOpenedAndOthersAreFound) {
  HostileFolder folder;
  folder.AddHostile("neighbour");
  for (const Case& c : kFiles) folder.Write(std::string(c.name) + ".so", c.bytes());
  PluginDirectory directory = {folder.path(), "the test"};
  Discovery found = DiscoverPlugins(std::span(&directory, 1), HostIsa());
  std::vector<PluginFile> rows = found.rejected;
  for (const FoundPlugin& f : found.accepted) rows.push_back(f.file);
  for (const Case& c : kFiles) {
    PluginFile row = FileNamed(rows, std::string(c.name) + ".so");
    EXPECT_EQ(row.verdict, c.verdict) << c.name << ": " << row.reason;
    EXPECT_EQ(VerdictCodeName(row.code), VerdictCodeName(c.code)) << c.name << ": " << row.reason;
    EXPECT_THAT(row.reason, HasSubstr(c.reason)) << c.name;
    if (c.verdict == Verdict::kRefused) {
      EXPECT_NE(row.fix, "") << c.name;
    }
  }
  EXPECT_EQ(found.accepted.size(), 2u);
  // Discovery does not open the files, so none is mapped.
  EXPECT_EQ(ReadAll("/proc/self/maps").find(folder.path()), std::string::npos);
}

TEST(HostileFiles, TruncatedAnywhereAreRefusedOrHarmless) {
  PluginFolder folder;
  std::string bytes = HostileBytes("quiet");
  for (size_t size = 0; size < bytes.size(); size += size < 2048 ? 7 : 997) {
    folder.Write("mge_cut.so", bytes.substr(0, size));
    PluginDirectory directory = {folder.path(), "the test"};
    Discovery found = DiscoverPlugins(std::span(&directory, 1), HostIsa());
    // Only section headers and debug symbols follow the last segment. Loading does not need them.
    if (found.accepted.empty()) {
      EXPECT_NE(found.rejected.at(0).reason, "") << size;
    }
  }
}

struct TableCase {
  const char* name;
  VerdictCode code;
  const char* reason;
};
class HostileTable : public testing::TestWithParam<TableCase> {};

TEST_P(HostileTable, IsRefusedInProcessWithAReasonAndTheNeighbourLoads) {
  HostileFolder folder;
  folder.AddHostile(GetParam().name);
  folder.AddHostile("quiet");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  PluginFile row = FileNamed(devices->files(), std::string("mge_") + GetParam().name + ".so");
  EXPECT_EQ(row.verdict, Verdict::kRefused);
  EXPECT_EQ(VerdictCodeName(row.code), VerdictCodeName(GetParam().code)) << row.reason;
  EXPECT_THAT(row.reason, HasSubstr(GetParam().reason));
  EXPECT_NE(row.fix, "");
  EXPECT_TRUE(devices->Resolve("hostile0").ok());
}

INSTANTIATE_TEST_SUITE_P(
    Hostile, HostileTable,
    testing::Values(TableCase{"query_throw", VerdictCode::kQueryRefused, "threw an exception"},
                    TableCase{"query_error", VerdictCode::kQueryRefused, "declines"},
                    TableCase{"query_null", VerdictCode::kBadTable, "NULL"},
                    TableCase{"query_settings", VerdictCode::kBadTable, "declares 18446744073709551615 settings"},
                    TableCase{"query_text", VerdictCode::kBadTable, "is not a valid text"},
                    TableCase{"start_throw", VerdictCode::kStartFailed, "thrown by the hostile backend"},
                    TableCase{"start_error", VerdictCode::kStartFailed, "gives up"},
                    TableCase{"enumerate_throw", VerdictCode::kBadDevice, "thrown by the hostile backend"},
                    TableCase{"enumerate_error", VerdictCode::kBadDevice, "gives up"},
                    TableCase{"enumerate_wild", VerdictCode::kBadDevice, "more than 1024 devices"},
                    TableCase{"enumerate_short", VerdictCode::kBadDevice, "too short"}),
    [](const auto& info) { return std::string(info.param.name); });

// Runs in a child process, because the thread keeps the dynamic linker's lock after the exception.
TEST(HostileTable, AStaticObjectThatThrowsIsRefusedEachTimeAndTheNeighbourLoads) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "no exception gets through a sanitizer's dlopen";
#endif
  HostileFolder folder;
  folder.AddHostile("load_throw");
  folder.AddHostile("quiet");
  const int end = InChild([&] {
    for (int i = 0; i < 2; ++i) {  // the library stays mapped after the first attempt and must not be accepted
      std::unique_ptr<Devices> devices = Load({folder.path()});
      PluginFile row = FileNamed(devices->files(), "mge_load_throw.so");
      EXPECT_EQ(row.verdict, Verdict::kRefused);
      EXPECT_EQ(VerdictCodeName(row.code), "open_threw") << row.reason;
      EXPECT_THAT(row.reason, AllOf(HasSubstr("while it was being opened"), HasSubstr("thrown by the hostile backend")));
      EXPECT_THAT(row.fix, AllOf(HasSubstr("`mge doctor`"), HasSubstr("MGE_PLUGIN_SKIP=load_throw")));
      EXPECT_TRUE(devices->Resolve("hostile0").ok());
    }
    return !HasFailure();
  });
  EXPECT_EQ(end, 0);
}

TEST(HostileTable, TheErrorNamesAMissingLibraryAndTheFileThatNeedsIt) {
  PluginFolder folder;
  folder.Add("missing_library");
  folder.Add("missing_in_turn");
  folder.Add("missing_symbol");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  PluginFile library = FileNamed(devices->files(), "mge_missing_library.so");
  EXPECT_EQ(library.code, VerdictCode::kMissingLibrary);
  EXPECT_THAT(library.reason, HasSubstr("it needs the library libmge_test_gone.so"));
  PluginFile in_turn = FileNamed(devices->files(), "mge_missing_in_turn.so");
  EXPECT_EQ(in_turn.code, VerdictCode::kMissingLibrary);
  EXPECT_THAT(in_turn.reason, AllOf(HasSubstr("libmge_test_between.so"), HasSubstr("needs libmge_test_gone.so in turn")));
  PluginFile symbol = FileNamed(devices->files(), "mge_missing_symbol.so");
  EXPECT_EQ(symbol.code, VerdictCode::kMissingSymbol);
  EXPECT_THAT(symbol.reason, AllOf(HasSubstr("mge_missing_symbol.so"), HasSubstr("mge_test_symbol_that_nobody_has")));
}

TEST(HostileTable, ExportedVariablesAreSeparateInEachBackend) {
  HostileFolder folder;
  folder.AddHostile("quiet");
  folder.AddHostile("query_twice");  // changes an exported variable of the same name
  std::unique_ptr<Devices> devices = Load({folder.path()});
  for (const PluginFile& file : devices->files()) EXPECT_EQ(file.verdict, Verdict::kLoaded) << file.path << file.reason;
}

TEST(HostileTable, AHundredBackendsLoadInTheOrderOfTheirNames) {
  HostileFolder folder;
  for (int i = 99; i >= 0; --i) folder.AddHostile(fmt::format("q{:02}", i));
  std::unique_ptr<Devices> devices = Load({folder.path()});
  ASSERT_EQ(devices->files().size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(devices->files()[static_cast<size_t>(i)].name, fmt::format("q{:02}", i));
    EXPECT_EQ(devices->files()[static_cast<size_t>(i)].verdict, Verdict::kLoaded)
        << devices->files()[static_cast<size_t>(i)].reason;
  }
  EXPECT_EQ(devices->all().size(), 101u);
}

// Prints the time to examine 20 backends. The goal is 5 ms; the test does not check it.
TEST(Discovery, OfTwentyBackendsWithoutOpeningThem) {
  HostileFolder folder;
  for (int i = 0; i < 20; ++i) folder.AddHostile(fmt::format("q{:02}", i));
  PluginDirectory directory = {folder.path(), "the test"};
  double best = 1e9;
  for (int run = 0; run < 20; ++run) {
    auto begin = std::chrono::steady_clock::now();
    Discovery found = DiscoverPlugins(std::span(&directory, 1), HostIsa());
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    ASSERT_EQ(found.accepted.size(), 20u);
  }
  std::printf("discovery of 20 backends: %.3f ms\n", best);
  RecordProperty("discovery_of_20_backends_ms", std::to_string(best));
}

}  // namespace
}  // namespace mge
