// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/discovery.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/plugin/elf_symbols.h"
#include "core/plugin/install.h"
#include "core/plugin/isa.h"
#include "core/plugin/needed.h"
#include "fmt/format.h"
#include "tests/support/forked_child.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Discovery Discover(const std::vector<std::string>& folders, uint32_t isa = MGE_ISA_KNOWN_BITS) {
  std::vector<PluginDirectory> directories;
  for (const std::string& folder : folders) directories.push_back({folder, "MGE_PLUGIN_PATH"});
  return DiscoverPlugins(directories, isa);
}

std::vector<std::string> NamesOf(const Discovery& discovery) {
  std::vector<std::string> names;
  for (const FoundPlugin& found : discovery.accepted)
    names.push_back(found.file.path.substr(found.file.path.rfind('/') + 1));
  return names;
}

TEST(Discovery, FindsLibrariesInTheOrderOfTheirNames) {
  PluginFolder folder;
  for (const char* kind : {"shy", "card", "good", "board"}) folder.Add(kind);
  folder.Write("README", "no library");
  folder.Write(".hidden.so", "");
  std::filesystem::create_directory(folder.At("sub"));
  std::ofstream(folder.At("sub/mge_x.so")) << ReadAll(FakeFile("processor"));
  Discovery discovery = Discover({folder.path()});
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_board.so", "mge_card.so", "mge_good.so", "mge_shy.so"));
  EXPECT_THAT(discovery.rejected, IsEmpty());
  const PluginFile& file = discovery.accepted[1].file;
  EXPECT_EQ(file.name, "card");
  EXPECT_EQ(file.abi, fmt::format("{}.{}", MGE_ABI_MAJOR, MGE_ABI_MINOR));
  EXPECT_THAT(file.classes, ElementsAre("card", "gpu"));
  EXPECT_EQ(file.build_id.size(), 40u);
}

TEST(Discovery, ReportsRelativeEmptyAndMissingDirectories) {
  Discovery discovery = Discover({"plugins", "", "/no/such/directory"});
  ASSERT_EQ(discovery.rejected.size(), 3u);
  EXPECT_EQ(discovery.rejected[0].code, VerdictCode::kDirectoryNotAbsolute);
  EXPECT_THAT(discovery.rejected[0].reason, HasSubstr("MGE_PLUGIN_PATH"));
  EXPECT_EQ(discovery.rejected[1].code, VerdictCode::kDirectoryNotAbsolute);
  EXPECT_EQ(discovery.rejected[2].code, VerdictCode::kDirectoryMissing);
  EXPECT_EQ(discovery.rejected[2].verdict, Verdict::kSkipped);
}

TEST(Discovery, RefusesFilesThatOthersMayWriteAndNamesTheMode) {
  PluginFolder folder;
  folder.Add("good");
  folder.Add("card");
  folder.Mode("mge_good.so", 0757);
  Discovery discovery = Discover({folder.path()});
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_card.so"));
  PluginFile file = FileNamed(discovery.rejected, "mge_good.so");
  EXPECT_EQ(file.code, VerdictCode::kUntrusted);
  EXPECT_EQ(file.verdict, Verdict::kRefused);
  EXPECT_THAT(file.reason, AllOf(HasSubstr("757"), HasSubstr("mge_good.so")));
  EXPECT_THAT(file.fix, HasSubstr("chmod go-w"));

  folder.Mode("", 0777);
  discovery = Discover({folder.path()});
  EXPECT_THAT(NamesOf(discovery), IsEmpty());
  ASSERT_EQ(discovery.rejected.size(), 1u);
  EXPECT_EQ(discovery.rejected[0].code, VerdictCode::kUntrusted);
  EXPECT_EQ(discovery.rejected[0].path, folder.path());
}

TEST(Discovery, AWritableParentDirectoryIsRefusedToo) {
  PluginFolder folder;
  std::filesystem::create_directory(folder.At("sub"));
  std::filesystem::permissions(folder.At("sub"), std::filesystem::perms(0755));
  std::ofstream(folder.At("sub/mge_good.so")) << ReadAll(FakeFile("good"));
  std::filesystem::permissions(folder.At("sub/mge_good.so"), std::filesystem::perms(0755));
  EXPECT_EQ(Discover({folder.At("sub")}).accepted.size(), 1u);
  folder.Mode("", 0777);
  Discovery discovery = Discover({folder.At("sub")});
  EXPECT_THAT(discovery.accepted, IsEmpty());
  EXPECT_EQ(discovery.rejected[0].code, VerdictCode::kUntrusted);
}

// Anyone may add files to a sticky directory. It may be a parent of the plugin directory, but not the directory itself.
TEST(Discovery, AStickyDirectoryIsNotSearched) {
  PluginFolder folder;
  folder.Add("good");
  folder.Mode("", 01777);
  Discovery discovery = Discover({folder.path()});
  EXPECT_THAT(discovery.accepted, IsEmpty());
  ASSERT_EQ(discovery.rejected.size(), 1u);
  EXPECT_EQ(discovery.rejected[0].path, folder.path());
  EXPECT_EQ(discovery.rejected[0].code, VerdictCode::kUntrusted);
  EXPECT_THAT(discovery.rejected[0].reason, HasSubstr("writable by others (mode 1777)"));
  EXPECT_THAT(discovery.rejected[0].fix, HasSubstr("create your own directory"));

  PluginFolder source;
  PluginDirectory shared = {folder.path(), "MGE_PLUGIN_PATH"};
  absl::StatusOr<std::string> installed = InstallPlugin(source.Add("card"), std::span(&shared, 1), HostIsa(), {});
  EXPECT_THAT(FormatError(installed.status()), HasSubstr("mode 1777"));
}

TEST(Discovery, ABackendNamedByTheSkipSettingIsSkipped) {
  PluginFolder folder;
  for (const char* kind : {"good", "card"}) folder.Add(kind);
  PluginDirectory directory = {folder.path(), "MGE_PLUGIN_PATH"};
  Discovery discovery = DiscoverPlugins(std::span(&directory, 1), MGE_ISA_KNOWN_BITS, {.skip = {"good", "nobody"}});
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_card.so"));
  ASSERT_EQ(discovery.rejected.size(), 1u);
  const PluginFile& file = discovery.rejected[0];
  EXPECT_EQ(file.name, "good");
  EXPECT_EQ(file.verdict, Verdict::kSkipped);
  EXPECT_EQ(VerdictCodeName(file.code), "left_out");
  EXPECT_EQ(file.reason, "plugin.skip names backend 'good'");
  EXPECT_THAT(file.fix, HasSubstr("mge env plugin.skip"));
}

TEST(Discovery, ReportsADirectoryThatCannotBeListed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  PluginFolder folder;
  folder.Add("good");
  folder.Mode("", 0711);
  EXPECT_EQ(InChild([&] {
              if (seteuid(12345) != 0) return false;
              Discovery discovery = Discover({folder.path()});
              if (discovery.rejected.size() != 1) return false;
              const PluginFile& row = discovery.rejected[0];
              return row.path == folder.path() && row.code == VerdictCode::kUnreadable &&
                     row.reason.find("Permission denied (from MGE_PLUGIN_PATH)") != std::string::npos && !row.fix.empty();
            }),
            0);
}

TEST(Discovery, TheWarningAboutExportsCountsThemAndNamesAFew) {
  PluginFolder folder;
  folder.Add("visible");
  PluginDirectory directory = {folder.path(), ""};
  EXPECT_EQ(Discover({folder.path()}).accepted.at(0).file.warning, MoreThanOneExport(folder.At("mge_visible.so")).value());
  // A skipped file is not searched for exports.
  EXPECT_EQ(DiscoverPlugins(std::span(&directory, 1), MGE_ISA_KNOWN_BITS, {.skip = {"visible"}}).rejected.at(0).warning, "");
  std::string bytes = ReadAll(FakeFile("visible"));
  Elf64_Ehdr head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  for (int i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr section;
    char* at = bytes.data() + head.e_shoff + static_cast<size_t>(i) * sizeof(section);
    std::memcpy(&section, at, sizeof(section));
    if (section.sh_type == SHT_DYNSYM) section.sh_size = uint64_t{1} << 40;
    std::memcpy(at, &section, sizeof(section));
  }
  absl::Status many = MoreThanOneExport(folder.Write("mge_many.so", bytes)).status();
  EXPECT_THAT(FormatError(many), HasSubstr("more than 131072 dynamic symbols"));
}

TEST(Discovery, AFileOverwrittenMeanwhileDoesNotCrash) {
  PluginFolder folder;
  const std::string path = folder.Add("visible"), bytes = ReadAll(path);
  std::atomic<bool> over = false;
  std::thread writer([&] {
    while (!over) std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  });
  for (int i = 0; i < 3000; ++i) {
    (void)ReadElfNeeds(path);
    (void)MoreThanOneExport(path);
    (void)VerifyPluginFile(path, MGE_ISA_KNOWN_BITS);
  }
  over = true;
  writer.join();
  EXPECT_EQ(VerifyPluginFile(path, MGE_ISA_KNOWN_BITS).file.verdict, Verdict::kAccepted);
}

TEST(Discovery, ForeignOwnersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
  PluginFolder folder;
  ASSERT_EQ(chown(folder.Add("good").c_str(), 12345, 12345), 0);
  Discovery discovery = Discover({folder.path()});
  PluginFile file = FileNamed(discovery.rejected, "mge_good.so");
  EXPECT_EQ(file.code, VerdictCode::kUntrusted);
  EXPECT_THAT(file.reason, HasSubstr("12345"));
}

TEST(Discovery, LinksThatLeaveTheirDirectoryAreRefused) {
  PluginFolder folder, other;
  other.Add("card");
  folder.Add("good", "mge_good.so.1");
  std::filesystem::create_symlink("mge_good.so.1", folder.At("mge_good.so"));
  std::filesystem::create_symlink(other.At("mge_card.so"), folder.At("mge_card.so"));
  std::filesystem::create_symlink("nowhere", folder.At("mge_dangling.so"));
  Discovery discovery = Discover({folder.path()});
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_good.so.1"));
  EXPECT_EQ(FileNamed(discovery.rejected, "mge_card.so").code, VerdictCode::kLinkOutside);
  EXPECT_EQ(FileNamed(discovery.rejected, "mge_dangling.so").code, VerdictCode::kUnreadable);
}

TEST(Discovery, FilesThatAreNotRegularAreNeverRead) {
  PluginFolder folder;
  ASSERT_EQ(mkfifo(folder.At("mge_pipe.so").c_str(), 0600), 0);
  std::filesystem::create_directory(folder.At("mge_dir.so"));
  Discovery discovery = Discover({folder.path()});
  EXPECT_EQ(FileNamed(discovery.rejected, "mge_pipe.so").code, VerdictCode::kUnreadable);
  EXPECT_EQ(FileNamed(discovery.rejected, "mge_dir.so").code, VerdictCode::kUnreadable);
}

// The loader decides which of them is used.
TEST(Discovery, BackendsOfOneNameAreInTheOrderOfTheirDirectories) {
  PluginFolder first, second;
  first.Add("better");
  second.Add("good");
  EXPECT_THAT(NamesOf(Discover({first.path(), second.path()})), ElementsAre("mge_better.so", "mge_good.so"));
  EXPECT_THAT(NamesOf(Discover({second.path(), first.path()})), ElementsAre("mge_good.so", "mge_better.so"));
}

TEST(Discovery, ARefusedFileDoesNotReserveItsName) {
  PluginFolder folder;
  folder.Write("mge_a.so", WithNote(ReadAll(FakeFile("good")), [](mge_note& n) { n.hash_low ^= 1; }));
  folder.Add("better", "mge_b.so");
  EXPECT_THAT(NamesOf(Discover({folder.path()})), ElementsAre("mge_b.so"));
}

TEST(Discovery, AFileWithTwoNamesIsAcceptedOnce) {
  PluginFolder folder;
  folder.Add("good", "mge_a.so");
  folder.Add("good", "mge_copy.so");  // has the same build id
  std::filesystem::create_hard_link(folder.At("mge_a.so"), folder.At("mge_link.so"));
  Discovery discovery =
      Discover({folder.path(), folder.path() + "/../" + folder.path().substr(folder.path().rfind('/') + 1)});
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_a.so"));
  ASSERT_EQ(discovery.rejected.size(), 2u);
  EXPECT_EQ(discovery.rejected[0].code, VerdictCode::kDuplicateFile);
  EXPECT_EQ(discovery.rejected[1].code, VerdictCode::kDuplicateFile);
}

TEST(Discovery, AMissingInstructionSetIsNamed) {
  PluginFolder folder;
  folder.Write("mge_wide.so", WithNote(ReadAll(FakeFile("good")), [](mge_note& n) { n.isa = MGE_ISA_AVX512; }));
  EXPECT_EQ(Discover({folder.path()}, MGE_ISA_KNOWN_BITS).accepted.size(), 1u);
  PluginFile file = FileNamed(Discover({folder.path()}, MGE_ISA_AVX2).rejected, "mge_wide.so");
  EXPECT_EQ(file.code, VerdictCode::kIsaMissing);
  EXPECT_THAT(file.reason, HasSubstr("AVX-512"));
  folder.Write("mge_wide.so", WithNote(ReadAll(FakeFile("good")), [](mge_note& n) { n.isa = 1u << 30; }));
  EXPECT_EQ(FileNamed(Discover({folder.path()}).rejected, "mge_wide.so").code, VerdictCode::kIsaMissing);
}

TEST(Discovery, OtherHeadersAreAnAbiMismatchWithAFix) {
  PluginFolder folder;
  folder.Write("mge_old.so", WithNote(ReadAll(FakeFile("good")), [](mge_note& n) { n.hash_high ^= 1; }));
  PluginFile file = FileNamed(Discover({folder.path()}).rejected, "mge_old.so");
  EXPECT_EQ(file.code, VerdictCode::kAbiMismatch);
  EXPECT_THAT(file.fix, HasSubstr("build it again with the SDK"));
  EXPECT_EQ(file.name, "good");
}

TEST(Discovery, AHundredFilesHaveAFixedOrder) {
  PluginFolder folder;
  for (int i = 0; i < 100; ++i) {
    folder.Write("mge_" + std::to_string(1000 + (i * 37) % 100) + ".so",
                 WithNote(ReadAll(FakeFile("good")), [&](mge_note& n) {
                   std::string name = "n" + std::to_string(i);
                   std::memcpy(n.name, name.c_str(), name.size() + 1);
                 }) + std::string(static_cast<size_t>(i), 'x'));
  }
  Discovery discovery = Discover({folder.path()});
  // The files are copies of one build, so only the first one is accepted.
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_1000.so"));
  EXPECT_EQ(discovery.rejected.size(), 99u);
}

TEST(Discovery, TheBuiltInDirectoryIsRelativeToTheLibrary) {
  EXPECT_EQ(BuiltInPluginDirectory(), MGE_BINARY_DIR "/tests/mge/plugins");
}

TEST(Discovery, AnEntryOfThePathMayBeAFile) {
  PluginFolder folder;
  folder.Add("good");
  folder.Add("card");
  Discovery discovery = Discover({folder.At("mge_card.so")});
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_card.so"));
  EXPECT_THAT(discovery.rejected, IsEmpty());
}

// ---------------------------------------------------------------- allowed and quarantined files

TEST(AllowList, AllowsByContentAndNotByName) {
  PluginFolder folder;
  folder.Add("good");
  folder.Add("card");
  PluginRules rules;
  std::string list = folder.At("allowed");
  std::string line = "cd " + folder.path() + " && sha256sum mge_good.so > allowed && chmod 644 allowed";
  ASSERT_EQ(std::system(line.c_str()), 0);
  rules.allow = *AllowList::Read(list);
  PluginDirectory directory = {folder.path(), ""};
  Discovery discovery = DiscoverPlugins(std::span(&directory, 1), MGE_ISA_KNOWN_BITS, rules);
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_good.so"));
  PluginFile card = FileNamed(discovery.rejected, "mge_card.so");
  EXPECT_EQ(card.code, VerdictCode::kNotAllowed);
  EXPECT_THAT(card.fix, HasSubstr("sha256sum '" + folder.At("mge_card.so") + "'"));
  std::filesystem::rename(folder.At("mge_good.so"), folder.At("mge_moved.so"));
  folder.Add("better", "mge_good.so");
  discovery = DiscoverPlugins(std::span(&directory, 1), MGE_ISA_KNOWN_BITS, rules);
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_moved.so"));
}

TEST(AllowList, ThatCannotBeReadIsAnErrorAndNotAnEmptyList) {
  PluginFolder folder;
  EXPECT_FALSE(AllowList::Read(folder.At("absent")).ok());
  folder.Write("bad", std::string(64, 'a') + "  mge_good.so\n\n# a comment\nno hash\n");
  absl::Status bad = AllowList::Read(folder.At("bad")).status();
  EXPECT_EQ(ErrorId(bad), errors::kBadSetting.id);
  EXPECT_THAT(FormatError(bad), HasSubstr("line 4"));
  folder.Write("good", std::string(64, 'A') + " *mge_good.so\r\n");
  EXPECT_TRUE(AllowList::Read(folder.At("good")).ok());
  EXPECT_TRUE(AllowList::Read(folder.At("good"))->Holds(std::string(64, 'a')));
  folder.Mode("good", 0666);
  EXPECT_THAT(FormatError(AllowList::Read(folder.At("good")).status()), HasSubstr("writable by others"));
}

TEST(Quarantine, AppliesToABuildWhateverItsPathAndToNoOther) {
  PluginFolder folder, state;
  folder.Add("good");
  folder.Add("card");
  PluginDirectory directory = {folder.path(), ""};
  PluginRules rules = {.quarantine = Quarantine(state.At("quarantine"))};
  std::string key = Discover({folder.path()}).accepted[1].file.build_id;
  ASSERT_TRUE(rules.quarantine.Add({key, "good", "/elsewhere/mge_good.so", "it crashed"}).ok());
  Discovery discovery = DiscoverPlugins(std::span(&directory, 1), MGE_ISA_KNOWN_BITS, rules);
  EXPECT_THAT(NamesOf(discovery), ElementsAre("mge_card.so"));
  PluginFile row = FileNamed(discovery.rejected, "mge_good.so");
  EXPECT_EQ(row.code, VerdictCode::kQuarantined);
  EXPECT_THAT(row.reason, HasSubstr("it crashed"));
  EXPECT_EQ(rules.quarantine.All().size(), 1u);
  ASSERT_TRUE(rules.quarantine.Remove(key).ok());
  EXPECT_EQ(DiscoverPlugins(std::span(&directory, 1), MGE_ISA_KNOWN_BITS, rules).accepted.size(), 2u);
}

TEST(Build, OfAFileWithoutABuildIdIsIdentifiedByItsContent) {
  PluginFolder folder;
  std::string path = folder.Write("mge_x.so", "bytes");
  RegularFile file = *OpenRegularFile(path);
  EXPECT_EQ(*BuildOf(file.fd.get(), path, ""), "sha256-277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9");
  EXPECT_EQ(*BuildOf(file.fd.get(), path, "abc"), "abc");
}

TEST(Install, CopiesAnAcceptedFileAndReplacesAnOlderOne) {
  PluginFolder from, to, denied;
  denied.Mode("", 0777);
  std::vector<PluginDirectory> directories = {{"/no/such", ""}, {denied.path(), ""}, {to.path(), ""}};
  from.Add("good");
  from.Mode("mge_good.so", 0666);  // the source's mode does not matter: the copy has the installer's
  absl::StatusOr<std::string> path = InstallPlugin(from.At("mge_good.so"), directories, MGE_ISA_KNOWN_BITS, {});
  ASSERT_TRUE(path.ok()) << FormatError(path.status());
  EXPECT_EQ(*path, to.At("mge_good.so"));
  EXPECT_EQ(std::filesystem::status(*path).permissions(), std::filesystem::perms(0755));
  EXPECT_EQ(ReadAll(*path), ReadAll(from.At("mge_good.so")));
  from.Write("mge_good.so", ReadAll(FakeFile("better")));
  ASSERT_TRUE(InstallPlugin(from.At("mge_good.so"), directories, MGE_ISA_KNOWN_BITS, {}).ok());
  EXPECT_EQ(ReadAll(*path), ReadAll(FakeFile("better")));
  from.Add("good", "mge_other_name.so");
  absl::Status twice = InstallPlugin(from.At("mge_other_name.so"), directories, MGE_ISA_KNOWN_BITS, {}).status();
  EXPECT_THAT(FormatError(twice), HasSubstr("mge plugins remove good"));
  EXPECT_EQ(*RemovePlugin("good", directories), *path);
  EXPECT_FALSE(std::filesystem::exists(*path));
  EXPECT_EQ(ErrorId(RemovePlugin("good", directories).status()), errors::kPluginRefused.id);
}

TEST(Install, LeavesNoFileIfTheSourceIsRefused) {
  PluginFolder from, to;
  std::vector<PluginDirectory> directories = {{to.path(), ""}};
  from.Write("mge_text.so", "no library");
  from.Write("mge_old.so", WithNote(ReadAll(FakeFile("good")), [](mge_note& n) { n.hash_low ^= 1; }));
  from.Add("good", "good.dll");
  absl::Status text = InstallPlugin(from.At("mge_text.so"), directories, MGE_ISA_KNOWN_BITS, {}).status();
  EXPECT_EQ(ErrorId(text), errors::kPluginRefused.id);
  EXPECT_THAT(FormatError(text), testing::Not(HasSubstr(".mge-install")));
  EXPECT_EQ(ErrorId(InstallPlugin(from.At("mge_old.so"), directories, MGE_ISA_KNOWN_BITS, {}).status()),
            errors::kAbiMismatch.id);
  EXPECT_FALSE(InstallPlugin(from.At("good.dll"), directories, MGE_ISA_KNOWN_BITS, {}).ok());
  EXPECT_FALSE(InstallPlugin(from.At("absent.so"), directories, MGE_ISA_KNOWN_BITS, {}).ok());
  EXPECT_TRUE(std::filesystem::is_empty(to.path()));
}

TEST(Install, BeyondAFileSizeLimitIsAnErrorAndLeavesNoFile) {
  PluginFolder from, to;
  std::vector<PluginDirectory> directories = {{to.path(), ""}};
  from.Add("good");
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = {4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  absl::Status status = InstallPlugin(from.At("mge_good.so"), directories, MGE_ISA_KNOWN_BITS, {}).status();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(ErrorId(status), errors::kFileWrite.id);
  EXPECT_THAT(FormatError(status),
              AllOf(HasSubstr(to.At("mge_good.so")), HasSubstr("4096 bytes were written"), HasSubstr("ulimit -f")));
  EXPECT_TRUE(std::filesystem::is_empty(to.path()));
}

TEST(Install, ReplacesOnlyAFileOfTheSameBackend) {
  PluginFolder from, to;
  std::vector<PluginDirectory> directories = {{to.path(), ""}};
  from.Add("card", "mge_dev.so");
  auto install = [&] { return InstallPlugin(from.At("mge_dev.so"), directories, MGE_ISA_KNOWN_BITS, {}); };
  auto kept = [&](const std::string& kind) { return ReadAll(to.At("mge_dev.so")) == ReadAll(FakeFile(kind)); };
  to.Add("good", "mge_dev.so");
  std::string text = FormatError(install().status());
  EXPECT_THAT(text, AllOf(HasSubstr("backend 'card'"), HasSubstr("with backend 'good'"), HasSubstr(to.At("mge_dev.so"))));
  EXPECT_THAT(text, HasSubstr("name the file mge_card.so, or first mge plugins remove 'good'"));
  EXPECT_TRUE(kept("good"));
  // It replaces a file of the same backend even if this host refuses that file.
  to.Write("mge_dev.so", WithNote(ReadAll(FakeFile("good")), [](mge_note& n) { n.hash_low ^= 1; }));
  EXPECT_THAT(FormatError(install().status()), HasSubstr("with backend 'good'"));
  to.Write("mge_dev.so", "notes of the user");
  EXPECT_THAT(FormatError(install().status()), AllOf(HasSubstr("not an ELF file"), HasSubstr("or first rm '")));
  EXPECT_EQ(ReadAll(to.At("mge_dev.so")), "notes of the user");
  std::filesystem::remove(to.At("mge_dev.so"));
  std::filesystem::create_symlink("nowhere", to.At("mge_dev.so"));
  EXPECT_FALSE(install().ok());
  std::filesystem::remove(to.At("mge_dev.so"));
  std::filesystem::create_directory(to.At("mge_dev.so"));
  EXPECT_THAT(FormatError(install().status()), AllOf(HasSubstr("it is a directory"), HasSubstr("or first move '")));
  std::filesystem::remove(to.At("mge_dev.so"));
  to.Write("mge_dev.so", WithNote(ReadAll(FakeFile("card")), [](mge_note& n) { n.hash_low ^= 1; }));
  EXPECT_TRUE(install().ok());
  EXPECT_TRUE(kept("card"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(to.path()), {}), 1);
}

TEST(Install, RemovesOnlyBackends) {
  PluginFolder folder;
  std::vector<PluginDirectory> directories = {{folder.path(), ""}};
  folder.Write("mge_good.so", ReadAll(MGE_BINARY_DIR "/tests/gone/libmge_test_gone.so"));
  EXPECT_FALSE(RemovePlugin("good", directories).ok());
  EXPECT_FALSE(RemovePlugin("mge_good.so", directories).ok());
  EXPECT_EQ(ErrorId(RemovePlugin("", directories).status()), errors::kUsage.id);
  EXPECT_TRUE(std::filesystem::exists(folder.At("mge_good.so")));
}

TEST(Isa, NamesEveryBit) {
  EXPECT_THAT(IsaNames(MGE_ISA_KNOWN_BITS | 1u << 20),
              AllOf(HasSubstr("AVX2"), HasSubstr("AVX-512"), HasSubstr("0x100000")));
  if (HostIsa() & MGE_ISA_AVX512) {
    EXPECT_TRUE(HostIsa() & MGE_ISA_AVX2);
  }
}

}  // namespace
}  // namespace mge
