// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/elf_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/plugin/elf_reader.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "mge/plugin.h"

namespace mge {
namespace {

constexpr uint64_t kMaxSymbols = 1 << 17;
constexpr size_t kLongestName = 256;
constexpr uint64_t kMaxNameBytes = kMaxSymbols * kLongestName;
constexpr size_t kNamed = 5;  // number of unexpected symbols named in a message

std::string_view NameAt(const std::vector<char>& names, uint64_t offset) {
  if (offset >= names.size()) return {};
  const char* begin = names.data() + offset;
  return {begin, strnlen(begin, std::min<size_t>(names.size() - offset, kLongestName))};
}

absl::Status NotSound(const std::string& path, std::string_view why) {
  return Fail(errors::kPluginRefused, fmt::format("the symbols of '{}' cannot be read", path), {.what = std::string(why)});
}

}  // namespace

absl::Status ReadElfSymbols(const std::string& path, const std::function<void(std::string_view, bool)>& take) {
  MGE_ASSIGN_OR_RETURN(RegularFile open, OpenRegularFile(path));
  const ElfReader file(open.fd.get());
  std::optional<Elf64_Ehdr> head = file.At<Elf64_Ehdr>(0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64) {
    return NotSound(path, "it is not a 64-bit ELF file");
  }
  const std::vector<Elf64_Shdr> sections = file.Table<Elf64_Shdr>(head->e_shoff, head->e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const uint64_t count = section.sh_size / sizeof(Elf64_Sym);
    if (count > kMaxSymbols) return NotSound(path, fmt::format("it has more than {} dynamic symbols", kMaxSymbols));
    const std::vector<Elf64_Sym> symbols = file.Table<Elf64_Sym>(section.sh_offset, count);
    const Elf64_Shdr& text = sections[section.sh_link];
    const std::vector<char> names = file.Table<char>(text.sh_offset, std::min<uint64_t>(text.sh_size, kMaxNameBytes));
    for (size_t k = 1; k < symbols.size(); ++k) {
      const Elf64_Sym& symbol = symbols[k];
      const bool exported = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && symbol.st_shndx < SHN_LORESERVE &&
                            ELF64_ST_VISIBILITY(symbol.st_other) == STV_DEFAULT;
      if (symbol.st_shndx == SHN_UNDEF || exported) {
        take(NameAt(names, symbol.st_name), symbol.st_shndx != SHN_UNDEF);
      }
    }
    return absl::OkStatus();
  }
  return NotSound(path, "it has no table of dynamic symbols");
}

absl::StatusOr<std::string> MoreThanOneExport(const std::string& path, std::string_view entry) {
  uint64_t count = 0;
  std::vector<std::string> named;
  MGE_RETURN_IF_ERROR(ReadElfSymbols(path, [&](std::string_view name, bool exported) {
    if (!exported || name == entry) return;
    if (++count <= kNamed) named.emplace_back(name);
  }));
  if (count == 0) return std::string();
  return fmt::format("it exports {} symbol{} besides {}: {}{}; link it with mge_backend()", count, count == 1 ? "" : "s",
                     entry, fmt::join(named, ", "), count > kNamed ? ", ..." : "");
}

}  // namespace mge
