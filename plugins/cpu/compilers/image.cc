// SPDX-License-Identifier: Apache-2.0
#include "compilers/image.h"

#include <elf.h>

#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>

namespace mge::jit {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kJumpBytes = 5;

// An error of the objects, with the reason.
struct LinkError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Object {
 public:
  explicit Object(std::string_view bytes) : bytes_(bytes) {
    const auto header = Read<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_type != ET_REL || header.e_machine != EM_X86_64) {
      throw LinkError("the object is not a relocatable ELF file for x86-64");
    }
    for (size_t i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(Read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
      if (sections_.back().sh_type == SHT_SYMTAB) symbols_ = i;
    }
    if (symbols_ == 0) throw LinkError("the object has no symbols");
  }

  template <typename T>
  T Read(uint64_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) throw LinkError("the object is too short");
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }

  size_t section_count() const { return sections_.size(); }
  const Elf64_Shdr& section(size_t i) const {
    if (i >= sections_.size()) throw LinkError("the object refers to a section that it lacks");
    return sections_[i];
  }
  std::string_view Content(size_t i) const {
    const Elf64_Shdr& s = section(i);
    if (s.sh_type == SHT_NOBITS || s.sh_offset > bytes_.size() || bytes_.size() - s.sh_offset < s.sh_size) {
      throw LinkError("the object has a section without content");
    }
    return bytes_.substr(s.sh_offset, s.sh_size);
  }
  size_t symbol_count() const { return section(symbols_).sh_size / sizeof(Elf64_Sym); }
  Elf64_Sym Symbol(size_t i) const { return Read<Elf64_Sym>(section(symbols_).sh_offset + i * sizeof(Elf64_Sym)); }
  std::string_view NameOf(const Elf64_Sym& symbol) const {
    const std::string_view names = Content(section(symbols_).sh_link);
    if (symbol.st_name >= names.size()) throw LinkError("the object has a symbol without a name");
    return names.substr(symbol.st_name, names.find('\0', symbol.st_name) - symbol.st_name);
  }

 private:
  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  size_t symbols_ = 0;
};

class Linker {
 public:
  Linker(const std::vector<std::string_view>& files, const std::vector<NamedData>& data) {
    image_.assign(kAlignment, '\0');
    for (const NamedData& d : data) {
      Align();
      data_[d.name] = image_.size();
      image_ += d.bytes;
    }
    for (const std::string_view file : files) objects_.emplace_back(file);
    for (size_t o = 0; o < objects_.size(); ++o) {
      for (size_t i = 0; i < objects_[o].symbol_count(); ++i) {
        const Elf64_Sym s = objects_[o].Symbol(i);
        if (ELF64_ST_BIND(s.st_info) != STB_LOCAL && s.st_shndx != SHN_UNDEF) globals_[objects_[o].NameOf(s)] = {o, i};
      }
    }
  }

  std::string Link(std::string_view entry) {
    const auto it = globals_.find(entry);
    if (it == globals_.end()) throw LinkError("the object lacks the function " + std::string(entry));
    const uint64_t target = AddressOf(it->second.object, it->second.symbol);
    image_[0] = '\xe9';  // jmp
    Write32(1, static_cast<int64_t>(target) - static_cast<int64_t>(kJumpBytes));
    return std::move(image_);
  }

 private:
  struct SymbolPlace {
    size_t object = 0, symbol = 0;
  };

  // Returns a symbol's offset in the image. Places its section.
  uint64_t AddressOf(size_t o, size_t number) {
    const Elf64_Sym s = objects_[o].Symbol(number);
    if (s.st_shndx == SHN_UNDEF) {
      const std::string_view name = objects_[o].NameOf(s);
      if (const auto it = data_.find(name); it != data_.end()) return it->second;
      const auto it = globals_.find(name);
      if (it == globals_.end()) throw LinkError("the code calls " + std::string(name) + ", a function of another library");
      return AddressOf(it->second.object, it->second.symbol);
    }
    if (s.st_shndx >= SHN_LORESERVE) throw LinkError("the code uses an absolute symbol");
    return Place(o, s.st_shndx) + s.st_value;
  }

  // Returns a section's offset in the image. Copies and relocates it at the first call.
  uint64_t Place(size_t o, size_t section) {
    const auto [it, is_new] = places_.try_emplace({o, section}, 0);
    if (!is_new) return it->second;
    const Object& object = objects_[o];
    const Elf64_Shdr& header = object.section(section);
    if (header.sh_addralign > kAlignment) throw LinkError("a section's alignment exceeds 64 bytes");
    if (!(header.sh_flags & SHF_ALLOC)) throw LinkError("the code refers to a section that is not loaded");
    if (header.sh_flags & SHF_TLS) throw LinkError("the code uses thread-local memory");
    Align();
    const uint64_t at = it->second = image_.size();
    image_ += object.Content(section);
    for (size_t i = 0; i < object.section_count(); ++i) {
      const Elf64_Shdr& r = object.section(i);
      if (r.sh_type == SHT_REL && r.sh_info == section) throw LinkError("relocations have no addends");
      if (r.sh_type != SHT_RELA || r.sh_info != section) continue;
      for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= r.sh_size; k += sizeof(Elf64_Rela)) {
        Relocate(o, at, header.sh_size, object.Read<Elf64_Rela>(r.sh_offset + k));
      }
    }
    return at;
  }

  void Relocate(size_t o, uint64_t base, uint64_t bytes, const Elf64_Rela& r) {
    const auto type = ELF64_R_TYPE(r.r_info);
    if (type != R_X86_64_PC32 && type != R_X86_64_PLT32) {
      throw LinkError("the code needs a relocation of type " + std::to_string(type) + ", which depends on its address");
    }
    if (r.r_offset > bytes || bytes - r.r_offset < sizeof(int32_t))
      throw LinkError("a relocation is outside of its section");
    const uint64_t at = base + r.r_offset;
    Write32(at, static_cast<int64_t>(AddressOf(o, ELF64_R_SYM(r.r_info))) + r.r_addend - static_cast<int64_t>(at));
  }

  void Align() { image_.resize((image_.size() + kAlignment - 1) / kAlignment * kAlignment, '\0'); }

  void Write32(uint64_t at, int64_t value) {
    if (value > std::numeric_limits<int32_t>::max() || value < std::numeric_limits<int32_t>::min()) {
      throw LinkError("the code is too large");
    }
    const auto narrow = static_cast<int32_t>(value);
    std::memcpy(image_.data() + at, &narrow, sizeof(narrow));
  }

  std::vector<Object> objects_;
  std::map<std::string_view, SymbolPlace> globals_;
  std::map<std::string_view, uint64_t> data_;             // name -> offset
  std::map<std::pair<size_t, size_t>, uint64_t> places_;  // object and section -> offset
  std::string image_;
};

}  // namespace

std::string LinkImage(const std::vector<std::string_view>& objects, const std::vector<NamedData>& data,
                      std::string_view entry, std::string* image) {
  try {
    *image = Linker(objects, data).Link(entry);
    return "";
  } catch (const LinkError& error) {
    return error.what();
  }
}

}  // namespace mge::jit
