// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/note.h"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/plugin/elf_reader.h"
#include "core/plugin/isa.h"
#include "fmt/format.h"
#include "mge/plugin.h"
#include "mge/plugin/names.hpp"
#include "mge/transport.h"

namespace mge {
namespace {

constexpr uint64_t kMaxNoteBytes = 1 << 16;
constexpr int kMaxProgramHeaders = 256;
constexpr uint64_t kMaxBuildIdBytes = 64;

std::string MachineName(uint16_t machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_386: return "32-bit x86";
    case EM_AARCH64: return "AArch64";
    case EM_ARM: return "32-bit ARM";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "PowerPC 64";
    case EM_S390: return "IBM Z";
    default: return fmt::format("machine number {}", machine);
  }
}

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#else
#error "name this machine's ELF number here"
#endif

std::string KindOfElf(uint16_t type) {
  switch (type) {
    case ET_REL: return "an object file";
    case ET_EXEC: return "a program";
    case ET_CORE: return "a core dump";
    default: return fmt::format("an ELF file of type {}", type);
  }
}

// Reads a text of a field of fixed size. Returns false if it is not terminated or a character is not allowed.
template <size_t kSize>
bool TextOf(const char (&field)[kSize], bool (*allowed)(char), std::string& out) {
  const void* end = std::memchr(field, 0, kSize);
  if (!end) return false;
  out.assign(field, static_cast<const char*>(end));
  return std::all_of(out.begin(), out.end(), allowed);
}

bool IsPrintable(char c) { return c > 0x20 && c < 0x7f; }
bool IsNameCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }
bool IsClassesCharacter(char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == ','; }

std::string ParseNote(std::span<const std::byte> bytes, PluginNote& out) {
  uint32_t size = 0;
  if (bytes.size() < sizeof(size)) return "its identity note is cut off";
  std::memcpy(&size, bytes.data(), sizeof(size));
  // The versions of a note are read even if its ABI major differs, so that the message can name them.
  constexpr size_t kVersions = offsetof(mge_note, isa);
  if (size > bytes.size() || size < kVersions) {
    return fmt::format("its identity note has {1} bytes, but its size field is {0}", size, bytes.size());
  }
  mge_note raw = {};
  std::memcpy(&raw, bytes.data(), std::min<size_t>(size, sizeof(raw)));
  out.abi_major = raw.abi_major;
  out.abi_minor = raw.abi_minor;
  out.abi_minor_min = raw.abi_minor_min;
  out.header_hash = static_cast<uint64_t>(raw.hash_high) << 32 | raw.hash_low;
  if (size < sizeof(raw)) {
    if (raw.abi_major != MGE_ABI_MAJOR) return {};
    return fmt::format("its identity note has {} bytes; {} are needed", size, sizeof(raw));
  }
  out.isa = raw.isa;
  std::string classes;
  if (!TextOf(raw.name, IsNameCharacter, out.name) || !IsBackendName(out.name)) {
    return "the name in its identity note is not of a-z, 0-9 and '_'";
  }
  if (!TextOf(raw.version, IsPrintable, out.version)) return "the version in its identity note is not plain text";
  if (!TextOf(raw.classes, IsClassesCharacter, classes)) {
    return "the device classes in its identity note are not of a-z and '_', separated by commas";
  }
  if (out.is_transport) {
    return classes.empty() ? std::string()
                           : "it is a transport, which has no device classes, but its identity note names some";
  }
  for (size_t begin = 0; begin <= classes.size();) {
    size_t end = std::min(classes.find(',', begin), classes.size());
    std::string cls = classes.substr(begin, end - begin);
    if (std::string_view why = WhyNoClassName(cls); !why.empty()) {
      return fmt::format("its identity note names the device class '{}': {}", cls, why);
    }
    out.classes.push_back(std::move(cls));
    begin = end + 1;
  }
  return {};
}

NoteReading& Deny(NoteReading& reading, VerdictCode code, std::string reason) {
  reading.code = code;
  reading.reason = std::move(reason);
  return reading;
}

// Reads the notes of one segment. Each descriptor and each note begins at a multiple of `alignment` from the segment's
// begin. Returns false if the format is broken. `why` is set if the identity note is invalid.
bool ScanNotes(std::span<const std::byte> segment, uint64_t alignment, NoteReading& out, bool& found, std::string& why) {
  uint64_t at = 0;
  auto aligned = [&](uint64_t n) { return (n + alignment - 1) / alignment * alignment; };
  while (segment.size() - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, segment.data() + at, sizeof(header));
    at += sizeof(header);
    uint64_t owner_bytes = aligned(sizeof(header) + header.n_namesz) - sizeof(header), left = segment.size() - at;
    if (owner_bytes > left || header.n_descsz > left - owner_bytes) return false;
    std::string_view owner(reinterpret_cast<const char*>(segment.data() + at), header.n_namesz);
    std::span<const std::byte> body = segment.subspan(at + owner_bytes, header.n_descsz);
    if (owner == std::string_view("GNU", 4) && header.n_type == NT_GNU_BUILD_ID && body.size() <= kMaxBuildIdBytes) {
      out.build_id.clear();
      for (std::byte b : body) out.build_id += fmt::format("{:02x}", static_cast<unsigned>(b));
    }
    const bool is_transport = header.n_type == MGE_TRANSPORT_NOTE_TYPE;
    if (owner == std::string_view(MGE_NOTE_OWNER, 4) && (header.n_type == MGE_NOTE_TYPE || is_transport)) {
      if (found) why = "it has two identity notes";
      if (!found) out.note.is_transport = is_transport;
      if (!found) why = ParseNote(body, out.note);
      found = true;
    }
    at = std::min<uint64_t>(at + owner_bytes + aligned(header.n_descsz), segment.size());
  }
  return true;
}

}  // namespace

bool IsBackendName(std::string_view name) { return WhyNoBackendName(name).empty(); }

absl::Status CheckBackendName(std::string_view name) {
  const std::string_view why = WhyNoBackendName(name);
  if (why.empty()) return absl::OkStatus();
  return Fail(errors::kUsage, fmt::format("'{}' is not the name of a backend", name),
              {.what = std::string(why), .fix = "use a name that `mge plugins` shows"});
}

bool IsClassName(std::string_view name) {
  return name.size() >= kShortestClass && name.size() < sizeof(mge_note::classes) && name[0] != '_' &&
         std::all_of(name.begin(), name.end(), [](char c) { return c != ',' && IsClassesCharacter(c); });
}

NoteReading ReadNote(int fd) {
  NoteReading out;
  struct stat st;
  if (fstat(fd, &st) != 0) return Deny(out, VerdictCode::kUnreadable, ErrnoText(errno));
  const ElfReader file(fd);
  auto read = [&](uint64_t offset, void* to, size_t bytes) { return file.Read(offset, to, bytes) == bytes; };
  uint64_t file_bytes = static_cast<uint64_t>(st.st_size);
  Elf64_Ehdr header;
  unsigned char magic[EI_NIDENT] = {};
  if (file_bytes == 0) return Deny(out, VerdictCode::kNotElf, "the file is empty");
  if (!read(0, magic, std::min<uint64_t>(file_bytes, sizeof(magic)))) {
    return Deny(out, VerdictCode::kUnreadable, "the file cannot be read");
  }
  if (std::memcmp(magic, ELFMAG, SELFMAG) != 0) {
    return Deny(out, VerdictCode::kNotElf, "it is not an ELF file, so it is not a shared library");
  }
  if (file_bytes < sizeof(header)) {
    return Deny(out, VerdictCode::kDamaged, fmt::format("it ends within the ELF header, at byte {}", file_bytes));
  }
  if (!read(0, &header, sizeof(header))) return Deny(out, VerdictCode::kUnreadable, "the file cannot be read");
  if (magic[EI_CLASS] != ELFCLASS64 || magic[EI_DATA] != ELFDATA2LSB || header.e_machine != kMachine) {
    std::string machine = magic[EI_DATA] == ELFDATA2LSB ? MachineName(header.e_machine) : "a big-endian machine";
    return Deny(out, VerdictCode::kWrongMachine,
                fmt::format("it is built for {}{}; this host is {}", machine,
                            magic[EI_CLASS] == ELFCLASS64 ? "" : " (32-bit format)", MachineName(kMachine)));
  }
  if (header.e_type != ET_DYN) {
    return Deny(out, VerdictCode::kNotElf, fmt::format("it is {}, not a shared library", KindOfElf(header.e_type)));
  }
  uint64_t table_bytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > kMaxProgramHeaders ||
      header.e_phoff > file_bytes || table_bytes > file_bytes - header.e_phoff) {
    return Deny(out, VerdictCode::kDamaged, "its program headers are invalid or outside of the file");
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read(header.e_phoff, segments.data(), table_bytes)) {
    return Deny(out, VerdictCode::kUnreadable, "the file cannot be read");
  }
  bool found = false;
  std::string why;
  for (const Elf64_Phdr& segment : segments) {
    if ((segment.p_type == PT_LOAD || segment.p_type == PT_NOTE) &&
        (segment.p_offset > file_bytes || segment.p_filesz > file_bytes - segment.p_offset)) {
      return Deny(out, VerdictCode::kDamaged,
                  fmt::format("a segment ends at byte {}, but the file has {} bytes: it is truncated",
                              segment.p_offset + segment.p_filesz, file_bytes));
    }
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
    std::vector<std::byte> bytes(segment.p_filesz);
    if (!read(segment.p_offset, bytes.data(), bytes.size())) {
      return Deny(out, VerdictCode::kUnreadable, "the file cannot be read");
    }
    if (!ScanNotes(bytes, segment.p_align == 8 ? 8 : 4, out, found, why)) {
      return Deny(out, VerdictCode::kDamaged, "its ELF notes are malformed");
    }
  }
  if (!found) {
    return Deny(out, VerdictCode::kNoNote, "it is a shared library without the identity note of an MGE backend");
  }
  if (!why.empty()) return Deny(out, VerdictCode::kBadNote, why);
  return out;
}

std::string WhyAbiDiffers(const PluginNote& note) {
  if (note.abi_major != MGE_ABI_MAJOR) {
    return fmt::format("it was built for plugin interface {}.{}; this host supports {}.{}", note.abi_major, note.abi_minor,
                       MGE_ABI_MAJOR, MGE_ABI_MINOR);
  }
  if (note.abi_minor_min > MGE_ABI_MINOR) {
    return fmt::format("it needs plugin interface {}.{} or newer; this host supports {}.{}", note.abi_major,
                       note.abi_minor_min, MGE_ABI_MAJOR, MGE_ABI_MINOR);
  }
  if (MGE_ABI_MAJOR == 0 && note.header_hash != MGE_ABI_HASH) {
    return fmt::format(
        "it was built from the headers {:016x} (interface {}.{}); this host was built from {:016x} "
        "({}.{}), "
        "and before interface 1.0 both must be equal",
        note.header_hash, note.abi_major, note.abi_minor, uint64_t{MGE_ABI_HASH}, MGE_ABI_MAJOR, MGE_ABI_MINOR);
  }
  return {};
}

absl::StatusOr<std::string> BuildOf(int fd, std::string_view path, std::string_view build_id) {
  if (!build_id.empty()) return std::string(build_id);
  MGE_ASSIGN_OR_RETURN(std::string hash, Sha256OfFile(fd, path));
  return "sha256-" + hash;
}

absl::StatusOr<std::string> BuildOf(const std::string& path, std::string_view build_id) {
  MGE_ASSIGN_OR_RETURN(RegularFile file, OpenRegularFile(path));
  return BuildOf(file.fd.get(), path, build_id);
}

std::string WhyIsaIsMissing(const PluginNote& note, uint32_t isa) {
  const uint32_t missing = note.isa & ~isa;
  return missing ? fmt::format("it needs {}, which this machine does not offer", IsaNames(missing)) : std::string();
}

}  // namespace mge
