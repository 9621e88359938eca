// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/note.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/file.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Note : public testing::Test {
 protected:
  NoteReading Read(const std::string& bytes) {
    Fd fd(memfd_create("library", MFD_CLOEXEC));
    EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return ReadNote(fd.get());
  }
  const std::string good_ = ReadAll(FakeFile("good"));
};

TEST_F(Note, IsReadWithoutOpeningTheLibrary) {
  NoteReading reading = Read(ReadAll(FakeFile("card")));
  EXPECT_EQ(reading.code, VerdictCode::kOk) << reading.reason;
  EXPECT_EQ(reading.note.name, "card");
  EXPECT_EQ(reading.note.version, "1.0");
  EXPECT_THAT(reading.note.classes, ElementsAre("card", "gpu"));
  EXPECT_EQ(reading.note.header_hash, uint64_t{MGE_ABI_HASH});
  EXPECT_EQ(reading.build_id.size(), 40u);
  EXPECT_EQ(WhyAbiDiffers(reading.note), "");
}

#if defined(__x86_64__)
TEST_F(Note, IsFoundAmongNotesOfAnotherAlignment) {
  const std::string bytes = ReadAll(FakeFile("marked"));
  ASSERT_NE(bytes.find(std::string("GNU\0\2\0\0\xc0", 8)), std::string::npos) << "no property of x86";
  NoteReading reading = Read(bytes);
  EXPECT_EQ(reading.code, VerdictCode::kOk) << reading.reason;
  EXPECT_EQ(reading.note.name, "marked");
  EXPECT_EQ(reading.build_id.size(), 40u);
}
#endif

TEST_F(Note, EmptyAndOtherFilesAreNotLibraries) {
  EXPECT_EQ(Read("").code, VerdictCode::kNotElf);
  EXPECT_EQ(Read("#!/bin/sh\nrm -rf /\n").code, VerdictCode::kNotElf);
  EXPECT_EQ(Read("\x7f"
                 "ELF")
                .code,
            VerdictCode::kDamaged);
}

TEST_F(Note, OtherMachinesAreNamed) {
  NoteReading arm = Read(WithElfHeader(good_, [](Elf64_Ehdr& h) { h.e_machine = EM_ARM; }));
  EXPECT_EQ(arm.code, VerdictCode::kWrongMachine);
  EXPECT_THAT(arm.reason, HasSubstr("32-bit ARM"));
  NoteReading narrow = Read(WithElfHeader(good_, [](Elf64_Ehdr& h) { h.e_ident[EI_CLASS] = ELFCLASS32; }));
  EXPECT_EQ(narrow.code, VerdictCode::kWrongMachine);
}

TEST_F(Note, ProgramsAndCoreDumpsAreNotLibraries) {
  NoteReading core = Read(WithElfHeader(good_, [](Elf64_Ehdr& h) { h.e_type = ET_CORE; }));
  EXPECT_EQ(core.code, VerdictCode::kNotElf);
  EXPECT_THAT(core.reason, HasSubstr("a core dump"));
}

TEST_F(Note, HeadersThatPointOutsideOfTheFileAreDamage) {
  EXPECT_EQ(Read(WithElfHeader(good_, [](Elf64_Ehdr& h) { h.e_phoff = UINT64_MAX - 8; })).code, VerdictCode::kDamaged);
  EXPECT_EQ(Read(WithElfHeader(good_, [](Elf64_Ehdr& h) { h.e_phnum = 0xffff; })).code, VerdictCode::kDamaged);
  EXPECT_EQ(Read(WithElfHeader(good_, [](Elf64_Ehdr& h) { h.e_phentsize = 3; })).code, VerdictCode::kDamaged);
}

TEST_F(Note, TruncationIsDetectedOrHarmless) {
  for (size_t size = 0; size < good_.size(); size += size < 2048 ? 1 : 97) {
    NoteReading reading = Read(good_.substr(0, size));
    // Only section headers follow the last segment. Loading a library does not need them.
    if (reading.code == VerdictCode::kOk) {
      EXPECT_EQ(reading.note.name, "good") << size;
    }
    if (size < 4096) {
      EXPECT_NE(reading.code, VerdictCode::kOk) << size;
    }
  }
}

TEST_F(Note, FlippedBitsOfTheHeadersNeverCrashTheReader) {
  for (size_t i = 0; i < 1024; ++i) {
    std::string bytes = good_;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    (void)Read(bytes);
  }
}

TEST_F(Note, ALibraryWithoutANoteIsNotABackend) {
  NoteReading reading = Read(ReadAll(MGE_BINARY_DIR "/tests/gone/libmge_test_gone.so"));
  EXPECT_EQ(reading.code, VerdictCode::kNoNote);
}

TEST_F(Note, TextsAreChecked) {
  auto code = [&](auto edit) { return Read(WithNote(good_, edit)).code; };
  EXPECT_EQ(code([](mge_note& n) { n.name[0] = 'G'; }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { n.name[0] = 0; }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { std::memset(n.name, 'a', sizeof(n.name)); }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { n.version[1] = '\x1b'; }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { n.classes[0] = ','; }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { n.classes[0] = '7'; }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { std::strcpy(n.classes, "host"); }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { std::strcpy(n.classes, "cpu,xpu"); }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { std::strcpy(n.classes, "gpux"); }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { std::strcpy(n.classes, "a"); }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { std::strcpy(n.classes, "multithreads"); }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { std::strcpy(n.classes, "npu"); }), VerdictCode::kOk);
  EXPECT_EQ(code([](mge_note& n) { n.struct_size = 12; }), VerdictCode::kBadNote);
  EXPECT_EQ(code([](mge_note& n) { n.struct_size = UINT32_MAX; }), VerdictCode::kBadNote);
}

TEST_F(Note, VersionErrorsNameBothVersions) {
  auto why = [&](auto edit) { return WhyAbiDiffers(Read(WithNote(good_, edit)).note); };
  EXPECT_THAT(why([](mge_note& n) {
                n.abi_major = 7;
                n.abi_minor = 2;
              }),
              HasSubstr("interface 7.2; this host supports 0."));
  EXPECT_THAT(why([](mge_note& n) { n.abi_minor_min = 99; }), HasSubstr("needs plugin interface 0.99 or newer"));
  EXPECT_THAT(why([](mge_note& n) { n.hash_low ^= 1; }), HasSubstr("both must be equal"));
  // A backend with a newer minor version is accepted if it declares that older hosts suffice and its header hash is equal.
  EXPECT_EQ(why([](mge_note& n) { n.abi_minor = 99; }), "");
}

TEST_F(Note, OfAnotherMajorMayBeShorter) {
  NoteReading reading = Read(WithNote(good_, [](mge_note& n) {
    n.abi_major = 3;
    n.struct_size = 24;
  }));
  EXPECT_EQ(reading.code, VerdictCode::kOk) << reading.reason;
  EXPECT_THAT(WhyAbiDiffers(reading.note), HasSubstr("interface 3."));
}

}  // namespace
}  // namespace mge
