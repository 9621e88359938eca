// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/needed.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 32;
constexpr size_t kMostRows = 4096;       // of the dynamic section
constexpr size_t kLongestText = 1 << 16;
constexpr size_t kMostLibraries = 256;
constexpr size_t kMostPaths = 8;
constexpr size_t kMostElements = 256;  // of all paths

// A struct at an offset of the file, if it is all there.
template <typename T>
std::optional<T> At(Bytes bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return out;
}

// A text with its end, from a table of strings of the file.
std::optional<std::string> TextAt(Bytes strings, uint64_t offset) {
  if (offset >= strings.size()) return std::nullopt;
  const char* begin = reinterpret_cast<const char*>(strings.data()) + offset;
  const void* end = std::memchr(begin, 0, std::min(strings.size() - offset, kLongestText));
  if (!end) return std::nullopt;
  return std::string(begin, static_cast<const char*>(end));
}

// The bytes of the file from an address of the loaded object to the end of its segment.
Bytes FromAddress(Bytes bytes, const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type != PT_LOAD || address < s.p_vaddr || address - s.p_vaddr >= s.p_filesz) continue;
    if (s.p_offset > bytes.size() || s.p_filesz > bytes.size() - s.p_offset) return {};
    return bytes.subspan(s.p_offset, s.p_filesz).subspan(address - s.p_vaddr);
  }
  return {};
}

}  // namespace

absl::StatusOr<ElfNeeds> ReadElfNeeds(const std::string& path) {
  auto unsound = [&](std::string_view why) {
    return Fail(errors::kPluginRefused, fmt::format("what '{}' needs cannot be read", path), {.what = std::string(why)});
  };
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path, kMaxBytes));
  Bytes bytes = file->bytes();
  std::optional<Elf64_Ehdr> header = At<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
    return unsound("it is no 64-bit ELF file");
  }
  std::vector<Elf64_Phdr> segments;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    std::optional<Elf64_Phdr> segment = At<Elf64_Phdr>(bytes, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return unsound("its program headers lie outside of the file");
    segments.push_back(*segment);
  }
  std::vector<Elf64_Dyn> rows;
  std::optional<uint64_t> strings_at;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      std::optional<Elf64_Dyn> row = At<Elf64_Dyn>(bytes, segment.p_offset + at);
      if (!row || rows.size() >= kMostRows) return unsound("its dynamic section has no end, or lies outside of the file");
      if (row->d_tag == DT_NULL) break;
      if (row->d_tag == DT_STRTAB) strings_at = row->d_un.d_ptr;
      rows.push_back(*row);
    }
  }
  Bytes strings = strings_at ? FromAddress(bytes, segments, *strings_at) : Bytes();
  ElfNeeds out;
  size_t elements = 0;
  for (const Elf64_Dyn& row : rows) {
    if (!out.beyond.empty()) break;
    const bool library = row.d_tag == DT_NEEDED || row.d_tag == DT_FILTER || row.d_tag == DT_AUXILIARY;
    if (!library && row.d_tag != DT_RUNPATH && row.d_tag != DT_RPATH) continue;
    std::optional<std::string> text = TextAt(strings, row.d_un.d_val);
    if (!text) return unsound("a name in its dynamic section has no end, or lies outside of the file");
    if (library) {
      if (out.libraries.size() == kMostLibraries) out.beyond = fmt::format("{} libraries that it needs", kMostLibraries);
      out.libraries.push_back(*std::move(text));
    } else {
      elements += 1 + static_cast<size_t>(std::count(text->begin(), text->end(), ':'));
      if (out.paths.size() == kMostPaths) out.beyond = fmt::format("{} lists of directories for libraries", kMostPaths);
      if (elements > kMostElements) out.beyond = fmt::format("{} directories for libraries", kMostElements);
      out.paths.push_back({row.d_tag == DT_RUNPATH ? "RUNPATH" : "RPATH", *std::move(text)});
    }
  }
  return out;
}

std::vector<std::string> NeededLibraries(const std::string& path) {
  absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(path);
  return needs.ok() ? std::move(needs->libraries) : std::vector<std::string>();
}

std::vector<std::string> ElementsOf(const ElfSearchPath& path) {
  std::vector<std::string> out;
  if (path.text.empty()) return out;
  for (size_t begin = 0; begin <= path.text.size();) {
    const size_t end = std::min(path.text.find(':', begin), path.text.size());
    out.push_back(path.text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace mge
