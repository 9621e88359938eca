// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/needed.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/file.h"

namespace mge {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 32;

// A struct at an offset of the file, if it is all there.
template <typename T>
std::optional<T> At(Bytes bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return out;
}

std::string TextAt(Bytes bytes, uint64_t offset) {
  if (offset >= bytes.size()) return {};
  const char* begin = reinterpret_cast<const char*>(bytes.data()) + offset;
  return std::string(begin, strnlen(begin, std::min<size_t>(bytes.size() - offset, 4096)));
}

}  // namespace

std::vector<std::string> NeededLibraries(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path, kMaxBytes);
  if (!file.ok()) return {};
  Bytes bytes = (*file)->bytes();
  std::optional<Elf64_Ehdr> header = At<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return {};
  std::vector<Elf64_Phdr> segments;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    if (auto segment = At<Elf64_Phdr>(bytes, header->e_phoff + i * sizeof(Elf64_Phdr))) segments.push_back(*segment);
  }
  std::vector<uint64_t> names;  // offsets in the table of strings
  uint64_t strings = 0;         // its address
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      std::optional<Elf64_Dyn> row = At<Elf64_Dyn>(bytes, segment.p_offset + at);
      if (!row || row->d_tag == DT_NULL) break;
      if (row->d_tag == DT_NEEDED) names.push_back(row->d_un.d_val);
      if (row->d_tag == DT_STRTAB) strings = row->d_un.d_ptr;
    }
  }
  std::vector<std::string> out;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || strings < segment.p_vaddr || strings - segment.p_vaddr >= segment.p_filesz) continue;
    for (uint64_t name : names) out.push_back(TextAt(bytes, segment.p_offset + (strings - segment.p_vaddr) + name));
  }
  return out;
}

}  // namespace mge
