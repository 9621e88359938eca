// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/elf_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mge {

size_t ElfReader::Read(uint64_t offset, void* out, size_t bytes) const {
  auto* to = static_cast<char*>(out);
  size_t done = 0;
  while (done < bytes) {
    ssize_t n = pread(fd_, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

std::optional<std::string> ElfReader::TextAt(uint64_t offset, uint64_t most) const {
  constexpr uint64_t kPiece = 256;
  std::string out;
  while (out.size() < most) {
    char piece[kPiece];
    const size_t read = Read(offset + out.size(), piece, std::min(kPiece, most - out.size()));
    const size_t length = strnlen(piece, read);
    out.append(piece, length);
    if (length < read) return out;
    if (read < kPiece) break;
  }
  return std::nullopt;
}

}  // namespace mge
