// SPDX-License-Identifier: Apache-2.0
// Search paths of the dynamic linker, for backends and for the files of MGE: no directory that other users can write to.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/plugin/install.h"
#include "core/plugin/isa.h"
#include "core/plugin/needed.h"
#include "tests/hostile/hostile.h"
#include "tests/hostile/watch.h"

namespace mge {
namespace {

using testing::HasSubstr;

constexpr char kWritten[] = "/mge_test_search_path/that_is_long_enough_for_what_is_written_over_it_by_a_test";
constexpr char kNeeded[] = "libmge_test_gone.so";

std::string Replaced(std::string bytes, const std::string& from, const std::string& to) {
  const size_t at = bytes.find(from + '\0');
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_LE(to.size(), from.size());
  std::memset(bytes.data() + at, 0, from.size());
  return bytes.replace(at, to.size(), to);
}

// Returns the bytes of a backend that needs kNeeded, with `places` as its search path.
std::string Searching(const std::string& places) { return Replaced(ReadAll(FakeFile("searches")), kWritten, places); }

// Returns the library after `edit(Elf64_Dyn&)` was called for each row of its dynamic section. `edit` returns true if it
// changed the row; it must change at least one.
template <typename F>
std::string WithRow(std::string bytes, F&& edit) {
  Elf64_Ehdr head;
  std::memcpy(&head, bytes.data(), sizeof(head));
  bool done = false;
  for (size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + head.e_phoff + i * sizeof(segment), sizeof(segment));
    for (size_t at = 0; segment.p_type == PT_DYNAMIC && at < segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn row;
      std::memcpy(&row, bytes.data() + segment.p_offset + at, sizeof(row));
      done |= edit(row);
      std::memcpy(bytes.data() + segment.p_offset + at, &row, sizeof(row));
    }
  }
  EXPECT_TRUE(done);
  return bytes;
}

// Returns the library with another tag instead of DT_RUNPATH.
std::string WithTag(const std::string& bytes, int64_t tag) {
  return WithRow(bytes, [&](Elf64_Dyn& row) {
    if (row.d_tag != DT_RUNPATH) return false;
    row.d_tag = tag;
    return true;
  });
}

PluginFile Verified(const PluginFolder& folder, const std::string& name) {
  PluginDirectory file = {folder.At(name), "the test"};
  Discovery found = DiscoverPlugins(std::span(&file, 1), HostIsa());
  return found.accepted.empty() ? found.rejected.at(0) : found.accepted[0].file;
}

TEST(SearchPath, ThatDependsOnTheWorkingDirectoryOrTheMachineIsRefused) {
  PluginFolder folder;
  for (const char* places :
       {".", "lib", "..", ":", ":/usr/lib", "/usr/lib:", "/usr/lib::/lib", "$ORIGIN/../lib:", "$ORIGIN:lib", "$LIB",
        "$ORIGINAL/lib", "${ORIGIN/lib", "$ORIGIN.d", "/usr/$LIB", " /usr/lib"}) {
    for (bool old : {false, true}) {
      folder.Write("mge_x.so", old ? WithTag(Searching(places), DT_RPATH) : Searching(places));
      PluginFile row = Verified(folder, "mge_x.so");
      EXPECT_EQ(row.verdict, Verdict::kRefused) << places;
      EXPECT_EQ(VerdictCodeName(row.code), "search_path") << places << ": " << row.reason;
      EXPECT_THAT(row.reason, HasSubstr(fmt::format("its {} '{}'", old ? "RPATH" : "RUNPATH", places)));
      EXPECT_THAT(row.fix, HasSubstr(fmt::format("patchelf --set-rpath '$ORIGIN' '{}'", folder.At("mge_x.so"))));
    }
  }
}

TEST(SearchPath, OfDirectoriesThatOnlyTheUserMayWriteIsAccepted) {
  PluginFolder folder;
  std::filesystem::create_directory(folder.At("lib"));
  folder.Mode("lib", 0755);
  for (const char* places : {"", "$ORIGIN", "${ORIGIN}", "$ORIGIN/lib", "${ORIGIN}/none/lib", "/usr/lib:$ORIGIN/lib/../lib",
                             "/no/such/directory"}) {
    folder.Write("mge_x.so", Searching(places));
    PluginFile row = Verified(folder, "mge_x.so");
    EXPECT_EQ(row.verdict, Verdict::kAccepted) << places << ": " << row.reason;
  }
}

TEST(SearchPath, OfADirectoryThatOthersMayWriteIsRefused) {
  PluginFolder folder, open;
  for (const char* name : {"all", "sticky"}) std::filesystem::create_directory(open.At(name));
  open.Mode("all", 0777);
  open.Mode("sticky", 01777);
  std::filesystem::create_directory_symlink(open.At("sticky/none"), open.At("to_none"));
  std::filesystem::create_directory_symlink("loop", open.At("loop"));
  folder.Write("mge_here.so", Searching("$ORIGIN/way"));
  for (const char* last : {"all", "sticky", "all/none/lib", "sticky/none/lib", "to_none", "loop"}) {
    std::filesystem::remove(folder.At("way"));
    std::filesystem::create_directory_symlink(open.At(last), folder.At("way"));
    PluginFile row = Verified(folder, "mge_here.so");
    EXPECT_EQ(VerdictCodeName(row.code), "untrusted") << last << ": " << row.reason;
    EXPECT_THAT(row.reason, HasSubstr(fmt::format("in '{}'", folder.At("way")))) << last;
    EXPECT_NE(row.fix, "");
  }
  std::filesystem::remove(folder.At("way"));
  std::filesystem::create_directory(folder.At("way"));
  folder.Mode("way", 0777);
  EXPECT_EQ(VerdictCodeName(Verified(folder, "mge_here.so").code), "untrusted");
  folder.Write("mge_here.so", Searching("$ORIGIN/way/none/lib"));  // another user could create it
  EXPECT_EQ(VerdictCodeName(Verified(folder, "mge_here.so").code), "untrusted");
}

TEST(SearchPath, OfAnInstalledBackendFindsTheLibrariesThatWereBesideIt) {
  PluginFolder from, to;
  PluginDirectory directory = {to.path(), "the test"};
  auto install = [&] { return InstallPlugin(from.At("mge_x.so"), std::span(&directory, 1), HostIsa(), {}).status(); };
  std::filesystem::create_directory(from.At("lib"));
  from.Mode("lib", 0755);
  from.Write("mge_x.so", Searching("$ORIGIN/lib"));
  const std::string library = fmt::format("lib/{}", kNeeded);
  from.Write(library, "no library");
  const std::string text = FormatError(install());
  EXPECT_THAT(text, HasSubstr(fmt::format("do not exist in '{}': {}\n", to.path(), library)));
  EXPECT_THAT(text, HasSubstr(fmt::format("add '{}' to MGE_PLUGIN_PATH", from.path())));
  EXPECT_TRUE(std::filesystem::is_empty(to.path()));
  std::filesystem::copy(from.At("lib"), to.At("lib"));
  EXPECT_TRUE(install().ok()) << FormatError(install());
  std::filesystem::remove_all(to.At("lib"));
  from.Write("mge_x.so", Searching(from.At("lib")));  // an absolute path, which is valid for the copy, too
  EXPECT_TRUE(install().ok()) << FormatError(install());
}

TEST(SearchPath, TheNameOfANeededLibraryMayNotBeARelativePath) {
  PluginFolder folder;
  folder.Write("mge_x.so", Replaced(Searching("$ORIGIN"), kNeeded, "lib/gone.so"));
  PluginFile row = Verified(folder, "mge_x.so");
  EXPECT_EQ(VerdictCodeName(row.code), "search_path") << row.reason;
  EXPECT_THAT(row.reason, HasSubstr("needs the library 'lib/gone.so'"));
  folder.Write("mge_x.so", Replaced(Searching("$ORIGIN"), kNeeded, "$ORIGIN/gone.so"));
  EXPECT_EQ(Verified(folder, "mge_x.so").verdict, Verdict::kAccepted);
}

TEST(SearchPath, ThatCannotBeReadIsRefused) {
  PluginFolder folder;
  for (int64_t tag : {DT_RUNPATH, DT_NEEDED, DT_STRTAB}) {
    folder.Write("mge_x.so", WithRow(Searching("."), [&](Elf64_Dyn& row) {
                   if (row.d_tag != tag) return false;
                   row.d_un.d_val = uint64_t{1} << 40;
                   return true;
                 }));
    PluginFile row = Verified(folder, "mge_x.so");
    EXPECT_EQ(VerdictCodeName(row.code), "damaged") << tag << ": " << row.reason;
    EXPECT_THAT(row.reason, HasSubstr("is outside of the file")) << tag;
  }
}

TEST(SearchPath, OfABackendLoadsNothingFromTheWorkingDirectory) {
  HostileFolder folder;
  folder.Write("mge_dot.so", WithNote(Searching("."), [](mge_note& n) { std::strcpy(n.name, "dot"); }));
  std::filesystem::copy(MGE_BINARY_DIR "/tests/gone/libmge_test_gone.so", folder.state());
  Watch here(folder.state());
  Outcome o = folder.Mge("plugins --json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_FALSE(here.Opened(kNeeded));
  EXPECT_TRUE(here.Opened("stdout.txt"));
  EXPECT_EQ(RowOf(o.json()["files"], "dot")["code"], "search_path");
}

// ---------------------------------------------------------------- files of MGE

bool IsElf(const std::string& path) {
  char magic[SELFMAG] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof(magic));
  return std::memcmp(magic, ELFMAG, SELFMAG) == 0;
}

TEST(SearchPath, OfOurBinariesNeverNamesTheWorkingDirectory) {
  std::set<std::string> seen;
  for (const char* folder : {"/bin", "/lib"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(MGE_BINARY_DIR) + folder)) {
      const std::string path = entry.path();
      if (!entry.is_regular_file() || !IsElf(path)) continue;
      seen.insert(entry.path().filename());
      absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(path);
      ASSERT_TRUE(needs.ok()) << path;
      for (const std::string& element : needs->directories) {
        EXPECT_TRUE(element.starts_with("/") || element == "$ORIGIN" || element.starts_with("$ORIGIN/"))
            << path << " has the " << needs->kind << " '" << needs->Text() << "'";
      }
      for (const std::string& library : needs->libraries) {
        EXPECT_EQ(library.find('/'), std::string::npos) << path << " needs " << library;
      }
    }
  }
  for (const char* name : {"mge", "libmge.so.0", "mge-conform", "mge_null.so"}) EXPECT_EQ(seen.count(name), 1u) << name;
}

TEST(SearchPath, OfTheCommandOpensNoLibraryInTheWorkingDirectory) {
  HostileFolder folder;
  absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(MGE_BINARY_DIR "/bin/mge");
  ASSERT_TRUE(needs.ok());
  PluginFolder decoys;
  for (const std::string& library : needs->libraries) decoys.Write(library, "no library");
  std::filesystem::copy(decoys.path(), folder.state());
  Watch here(folder.state());
  Outcome o = folder.Mge("version");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_GE(needs->libraries.size(), 2u);
  for (const std::string& library : needs->libraries) EXPECT_FALSE(here.Opened(library)) << library;
}

}  // namespace
}  // namespace mge
