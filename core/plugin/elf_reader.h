// SPDX-License-Identifier: Apache-2.0
// An open ELF file, read in bounded pieces and never mapped: one that is cut short meanwhile ends no process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace mge {

// What is beyond the file's end, or cannot be read, is not there.
class ElfReader {
 public:
  explicit ElfReader(int fd) : fd_(fd) {}  // borrowed

  // How many of the bytes from an offset on are there.
  size_t Read(uint64_t offset, void* out, size_t bytes) const;

  // A struct, if it is all there.
  template <typename T>
  std::optional<T> At(uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T out;
    return Read(offset, &out, sizeof(out)) == sizeof(out) ? std::optional<T>(out) : std::nullopt;
  }

  // Structs or characters that lie side by side: as many as are there, `most` at most.
  template <typename T>
  std::vector<T> Table(uint64_t offset, size_t most) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> out(most);
    out.resize(Read(offset, out.data(), most * sizeof(T)) / sizeof(T));
    return out;
  }

  // A text that ends within `most` bytes.
  std::optional<std::string> TextAt(uint64_t offset, uint64_t most) const;

 private:
  int fd_;
};

}  // namespace mge
