// SPDX-License-Identifier: Apache-2.0
// Reads an open ELF file in bounded pieces with pread(). The file is never mapped: if another process truncates a mapped
// file, access raises SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace mge {

// A reader of an open file. Bytes beyond the end of the file and bytes that cannot be read are treated as absent.
class ElfReader {
 public:
  explicit ElfReader(int fd) : fd_(fd) {}  // `fd` is not owned

  // Copies up to `bytes` bytes from an offset. Returns the number of bytes that could be read.
  size_t Read(uint64_t offset, void* out, size_t bytes) const;

  // Returns the struct at an offset, or nullopt if the file does not contain all of it.
  template <typename T>
  std::optional<T> At(uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T out;
    return Read(offset, &out, sizeof(out)) == sizeof(out) ? std::optional<T>(out) : std::nullopt;
  }

  // Returns up to `most` consecutive elements from an offset; fewer if the file ends before.
  template <typename T>
  std::vector<T> Table(uint64_t offset, size_t most) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> out(most);
    out.resize(Read(offset, out.data(), most * sizeof(T)) / sizeof(T));
    return out;
  }

  // Returns the text at an offset without its terminating NUL, or nullopt if there is no NUL within `most` bytes.
  std::optional<std::string> TextAt(uint64_t offset, uint64_t most) const;

 private:
  int fd_;
};

}  // namespace mge
