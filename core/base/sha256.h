// SPDX-License-Identifier: Apache-2.0
// SHA-256 hashes of files and of bytes, as 64 hexadecimal digits.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace mge {

// The hash of bytes that are given in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(const void* data, size_t bytes);
  // Returns the hash of all bytes since the creation or the last call.
  std::string Digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the hash of the whole file, like sha256sum. The file position is ignored and unchanged. Errors: kFileAccess;
// `path` is for its message.
absl::StatusOr<std::string> Sha256OfFile(int fd, std::string_view path);

}  // namespace mge
