// SPDX-License-Identifier: Apache-2.0
#include "core/conform/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "core/conform/check.h"

namespace mge::conform {
namespace {

// A file's bytes, mapped for the life of the object.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info = {};
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
      void* at = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (at != MAP_FAILED) bytes_ = {static_cast<const char*>(at), static_cast<size_t>(info.st_size)};
    }
    if (fd >= 0) close(fd);
  }
  ~Mapped() {
    if (bytes_.data()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  // The T at an offset; false beyond the end.
  template <typename T>
  bool Get(uint64_t offset, T* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + offset, sizeof(T));
    return true;
  }
  std::string Text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    return {bytes_.data() + offset, strnlen(bytes_.data() + offset, bytes_.size() - offset)};
  }

 private:
  std::span<const char> bytes_;
};

}  // namespace

absl::StatusOr<ElfSymbols> ReadElfSymbols(const std::string& path) {
  Mapped file(path);
  Elf64_Ehdr head;
  if (!file.Get(0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) {
    return Broken("it is no 64-bit ELF file");
  }
  auto section = [&](uint32_t i, Elf64_Shdr* out) {
    return i < head.e_shnum && file.Get(head.e_shoff + uint64_t{i} * sizeof(Elf64_Shdr), out);
  };
  for (uint32_t i = 0; i < head.e_shnum; ++i) {
    Elf64_Shdr table, names;
    if (!section(i, &table)) break;
    if (table.sh_type != SHT_DYNSYM || !section(table.sh_link, &names)) continue;
    ElfSymbols out;
    for (uint64_t k = 1; k < table.sh_size / sizeof(Elf64_Sym); ++k) {
      Elf64_Sym symbol;
      if (!file.Get(table.sh_offset + k * sizeof(Elf64_Sym), &symbol)) break;
      std::string name = file.Text(names.sh_offset + symbol.st_name);
      if (symbol.st_shndx == SHN_UNDEF) {
        out.undefined.push_back(std::move(name));
      } else if (ELF64_ST_BIND(symbol.st_info) != STB_LOCAL && symbol.st_shndx < SHN_LORESERVE &&
                 ELF64_ST_VISIBILITY(symbol.st_other) == STV_DEFAULT) {
        out.exported.push_back(std::move(name));
      }
    }
    return out;
  }
  return Broken("it has no table of dynamic symbols");
}

}  // namespace mge::conform
