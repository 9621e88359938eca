// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/needed.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/plugin/elf_reader.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

constexpr uint64_t kMaxRows = 4096;  // limit on rows of the dynamic section, and on segments
constexpr uint64_t kLongestText = 1 << 16;

// A range of the file: from an address of the loaded object to the end of its segment.
struct Range {
  uint64_t offset = 0, bytes = 0;
};

Range FromAddress(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type != PT_LOAD || address < s.p_vaddr || address - s.p_vaddr >= s.p_filesz) continue;
    const uint64_t skipped = address - s.p_vaddr;
    return {s.p_offset + skipped, s.p_filesz - skipped};
  }
  return {};
}

std::optional<std::string> TextAt(const ElfReader& file, Range strings, uint64_t offset) {
  if (offset >= strings.bytes) return std::nullopt;
  return file.TextAt(strings.offset + offset, std::min(strings.bytes - offset, kLongestText));
}

}  // namespace

absl::StatusOr<ElfNeeds> ReadElfNeeds(const std::string& path) {
  auto unsound = [&](std::string_view why) {
    return Fail(errors::kPluginRefused, fmt::format("the dynamic section of '{}' cannot be read", path),
                {.what = std::string(why)});
  };
  MGE_ASSIGN_OR_RETURN(RegularFile open, OpenRegularFile(path));
  const ElfReader file(open.fd.get());
  std::optional<Elf64_Ehdr> header = file.At<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
    return unsound("it is not a 64-bit ELF file");
  }
  const std::vector<Elf64_Phdr> segments = file.Table<Elf64_Phdr>(header->e_phoff, header->e_phnum);
  if (segments.size() != header->e_phnum || segments.size() > kMaxRows) {
    return unsound("its program headers are outside of the file, or there are too many");
  }
  std::vector<Elf64_Dyn> rows;
  std::optional<uint64_t> strings_at;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const uint64_t count = segment.p_filesz / sizeof(Elf64_Dyn);
    const std::vector<Elf64_Dyn> table = file.Table<Elf64_Dyn>(segment.p_offset, std::min(count, kMaxRows - rows.size()));
    auto end = std::find_if(table.begin(), table.end(), [](const Elf64_Dyn& row) { return row.d_tag == DT_NULL; });
    if (end == table.end() && table.size() < count) {
      return unsound("its dynamic section has no end, or is outside of the file");
    }
    rows.insert(rows.end(), table.begin(), end);
  }
  for (const Elf64_Dyn& row : rows) {
    if (row.d_tag == DT_STRTAB) strings_at = row.d_un.d_ptr;
  }
  const Range strings = strings_at ? FromAddress(segments, *strings_at) : Range();
  ElfNeeds out;
  for (const Elf64_Dyn& row : rows) {
    const bool library = row.d_tag == DT_NEEDED || row.d_tag == DT_FILTER || row.d_tag == DT_AUXILIARY;
    if (!library && row.d_tag != DT_RUNPATH && row.d_tag != DT_RPATH) continue;
    std::optional<std::string> text = TextAt(file, strings, row.d_un.d_val);
    if (!text) return unsound("a name in its dynamic section has no end, or is outside of the file");
    if (library) {
      out.libraries.push_back(*std::move(text));
    } else if (row.d_tag == DT_RUNPATH || out.kind != "RUNPATH") {  // the dynamic linker prefers RUNPATH
      out.kind = row.d_tag == DT_RUNPATH ? "RUNPATH" : "RPATH";
      out.directories.clear();
      if (!text->empty()) out.directories = absl::StrSplit(*text, ':');
    }
  }
  return out;
}

std::string ElfNeeds::Text() const { return fmt::format("{}", fmt::join(directories, ":")); }

}  // namespace mge
