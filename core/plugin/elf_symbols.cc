// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "mge/plugin.h"

namespace mge {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 32;
constexpr uint64_t kMostSymbols = 1 << 17;
constexpr size_t kLongestName = 256;
constexpr size_t kNamed = 5;  // of the symbols that should not be there

// The T at an offset; false beyond the end.
template <typename T>
bool Get(Bytes file, uint64_t offset, T* out) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(out, file.data() + offset, sizeof(T));
  return true;
}

std::string_view TextAt(Bytes file, uint64_t offset) {
  if (offset >= file.size()) return {};
  const char* begin = reinterpret_cast<const char*>(file.data()) + offset;
  return {begin, strnlen(begin, std::min<size_t>(file.size() - offset, kLongestName))};
}

absl::Status NotSound(const std::string& path, std::string_view why) {
  return Fail(errors::kPluginRefused, fmt::format("the symbols of '{}' cannot be read", path), {.what = std::string(why)});
}

}  // namespace

absl::Status ReadElfSymbols(const std::string& path, const std::function<void(std::string_view, bool)>& take) {
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapped, MappedFile::Open(path, kMaxBytes));
  Bytes file = mapped->bytes();
  Elf64_Ehdr head;
  if (!Get(file, 0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) {
    return NotSound(path, "it is no 64-bit ELF file");
  }
  auto section = [&](uint32_t i, Elf64_Shdr* out) {
    return i < head.e_shnum && Get(file, head.e_shoff + uint64_t{i} * sizeof(Elf64_Shdr), out);
  };
  for (uint32_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr table, names;
    if (!section(i, &table)) break;
    if (table.sh_type != SHT_DYNSYM || !section(table.sh_link, &names)) continue;
    const uint64_t count = table.sh_size / sizeof(Elf64_Sym);
    if (count > kMostSymbols) return NotSound(path, fmt::format("it has more than {} dynamic symbols", kMostSymbols));
    for (uint64_t k = 1; k < count; ++k) {
      Elf64_Sym symbol;
      if (!Get(file, table.sh_offset + k * sizeof(Elf64_Sym), &symbol)) break;
      const bool exported = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && symbol.st_shndx < SHN_LORESERVE &&
                            ELF64_ST_VISIBILITY(symbol.st_other) == STV_DEFAULT;
      if (symbol.st_shndx == SHN_UNDEF || exported) {
        take(TextAt(file, names.sh_offset + symbol.st_name), symbol.st_shndx != SHN_UNDEF);
      }
    }
    return absl::OkStatus();
  }
  return NotSound(path, "it has no table of dynamic symbols");
}

absl::StatusOr<std::string> MoreThanOneExport(const std::string& path) {
  uint64_t count = 0;
  std::vector<std::string> named;
  MGE_RETURN_IF_ERROR(ReadElfSymbols(path, [&](std::string_view name, bool exported) {
    if (!exported || name == MGE_PLUGIN_QUERY_SYMBOL) return;
    if (++count <= kNamed) named.emplace_back(name);
  }));
  if (count == 0) return std::string();
  return fmt::format("it exports {} symbol{} besides " MGE_PLUGIN_QUERY_SYMBOL ": {}{}; link it by mge_backend()", count,
                     count == 1 ? "" : "s", fmt::join(named, ", "), count > kNamed ? ", ..." : "");
}

}  // namespace mge
